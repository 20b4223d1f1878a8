//! Repositories that are not there, not theirs, of a later version, or damaged.

use std::fs;
use std::path::{Path, PathBuf};

use super::{
    BACKED_UP, Row, Scene, Template, edit, flip, hold, hold_with, nothing, only_file, tells,
};
use crate::house::files_below;

const UPDATE: &str = "update this one if it is the older of the two";
const LOST: &str = "was rolled back to an older state, or hides it";

#[test]
fn a_place_without_a_repository() {
    hold(&[
        Row {
            name: "no such repository",
            set_up: nothing,
            command: "snapshots -r {here}/none",
            code: 10,
            names: "{here}/none",
            advises: "holdall init -r REPO",
            leaves: &[],
        },
        Row {
            name: "no such repository to back up into",
            set_up: nothing,
            command: "backup -r {here}/none {source}",
            code: 10,
            names: "{here}/none",
            advises: "name another with -r",
            leaves: &[],
        },
        Row {
            name: "a folder with other things",
            set_up: other_things,
            command: "backup -r {here}/other {source}",
            code: 10,
            names: "{here}/other",
            advises: "holdall init -r REPO",
            leaves: &[],
        },
        Row {
            name: "a repository among other things",
            set_up: other_things,
            command: "init -r {here}/other --recovery-kit {here}/new-kit",
            code: 1,
            names: "{here}/other is neither empty nor a repository: it has records",
            advises: "name a folder of its own",
            leaves: &[],
        },
        Row {
            name: "a repository where a file is",
            set_up: other_things,
            command: "init -r {kit} --recovery-kit {here}/new-kit",
            code: 1,
            names: "{kit}",
            advises: "name another place",
            leaves: &[],
        },
        Row {
            name: "a repository where one is",
            set_up: nothing,
            command: "init -r {repo} --recovery-kit {here}/new-kit",
            code: 1,
            names: "{repo} already",
            advises: "name another place with -r",
            leaves: &[],
        },
        Row {
            name: "a kit in place of another",
            set_up: with_password,
            command: "init -r {here}/new --recovery-kit {kit}",
            code: 1,
            names: "{kit} is there already",
            advises: "name a new file",
            leaves: &[],
        },
        Row {
            name: "an object store",
            set_up: nothing,
            command: "snapshots -r s3://bucket/prefix",
            code: 2,
            names: "s3://bucket/prefix",
            advises: "name a directory or a holdall server",
            leaves: &[],
        },
    ]);
}

fn with_password(scene: &mut Scene) {
    scene.env.push(("HOLDALL_PASSWORD", "correct horse".into()));
}

/// Somebody's folder that has a folder like one of ours.
fn other_things(scene: &mut Scene) {
    with_password(scene);
    fs::create_dir_all(scene.path("other/records")).unwrap();
    fs::write(scene.path("other/records/song.ogg"), "la la la").unwrap();
    fs::write(scene.path("other/records.txt"), "a list").unwrap();
}

#[test]
fn a_later_version() {
    let newer = |name, set_up, names| Row {
        name,
        set_up,
        command: "ls -r {repo} latest",
        code: 1,
        names,
        advises: UPDATE,
        leaves: &[],
    };
    hold(&[
        newer("a later repository", later_marker, "version 99; this program reads version 1"),
        newer("a later configuration", later_config, "{repo}/config"),
        newer("an earlier configuration", earlier_config, "format version 1; this program reads"),
        newer("later wrappings", later_wrappings, "wrapping set has format version 99"),
        newer("a later record", later_record, "record has format version 99"),
        newer("a later receipt", later_receipt, "receipt has format version 99"),
        Row {
            name: "a later repository that one backs up into",
            set_up: later_marker,
            command: "backup -r {repo} {source}",
            code: 1,
            names: "{repo}/holdall-repository",
            advises: UPDATE,
            leaves: &[],
        },
        Row {
            name: "a later repository that one makes another in",
            set_up: later_marker,
            command: "init -r {repo} --recovery-kit {here}/new-kit",
            code: 1,
            names: "{repo}/holdall-repository",
            advises: UPDATE,
            leaves: &[],
        },
        Row {
            name: "a later journal",
            set_up: later_journal,
            command: "check -r {repo}",
            code: 20,
            names: "damaged",
            advises: "no copy of it is left",
            leaves: &[],
        },
    ]);
}

/// Writes a version that is to come at a place of a file.
fn later(scene: &Scene, file: &str, at: usize) {
    edit(&scene.path(file), |bytes| bytes[at] = 99);
}

/// What writes a later version of these has no spare of this one beside it.
fn without_spare(scene: &Scene) {
    fs::remove_dir_all(scene.path("repo/spare")).unwrap();
}

fn later_marker(scene: &mut Scene) {
    without_spare(scene);
    edit(&scene.path("repo/holdall-repository"), |text| {
        *text = String::from_utf8_lossy(text).replace("version 1", "version 99").into_bytes();
    });
}

fn later_config(scene: &mut Scene) {
    without_spare(scene);
    later(scene, "repo/config", 4);
}

fn earlier_config(scene: &mut Scene) {
    without_spare(scene);
    edit(&scene.path("repo/config"), |bytes| bytes[4] = 1);
}

fn later_wrappings(scene: &mut Scene) {
    without_spare(scene);
    edit(&only_file(&scene.path("repo/wrappings")), |bytes| bytes[4] = 99);
}

fn later_record(scene: &mut Scene) {
    // Behind the lengths of record and head, and the magic.
    edit(&only_file(&scene.path("repo/records")), |bytes| bytes[12] = 99);
}

fn later_journal(scene: &mut Scene) {
    edit(&tail_of_chunks(scene, ".journal"), |bytes| bytes[4] = 99);
}

/// A file of the tail that holds chunks: tails are numbered as the first blocks of either kind come.
fn tail_of_chunks(scene: &Scene, ending: &str) -> PathBuf {
    let mut files = files_below(&scene.path("repo/tails")).into_iter();
    let is_wanted = |file: &PathBuf| {
        let name = file.file_name().unwrap().to_str().unwrap();
        name.starts_with("chunks.") && name.ends_with(ending)
    };
    files.find(is_wanted).unwrap()
}

fn later_receipt(scene: &mut Scene) {
    edit(&only_file(&scene.path("repo/records")), |bytes| {
        let receipt = bytes.len() - 168;
        bytes[receipt + 4] = 99;
    });
}

#[test]
fn a_wrong_key() {
    hold(&[
        Row {
            name: "a wrong password",
            set_up: |scene| {
                forget_key(scene);
                scene.env.push(("HOLDALL_PASSWORD", "battery staple".into()));
            },
            command: "snapshots -r {repo}",
            code: 12,
            names: "{repo}",
            advises: "check the password",
            leaves: &[],
        },
        Row {
            name: "an empty password",
            set_up: |scene| {
                forget_key(scene);
                fs::write(scene.path("password"), "\n").unwrap();
            },
            command: "snapshots -r {repo} --password-file {here}/password",
            code: 2,
            names: "empty",
            advises: "it comes from --password-file",
            leaves: &[],
        },
        Row {
            name: "a password file that is not there",
            set_up: forget_key,
            command: "snapshots -r {repo} --password-file {here}/none",
            code: 1,
            names: "{here}/none",
            advises: "is the name right, and is it still there?",
            leaves: &[],
        },
        Row {
            name: "a kit of another repository",
            set_up: |scene| {
                with_password(scene);
                let made = scene.run("init -r {here}/other --recovery-kit {here}/other-kit");
                made.expect(0);
            },
            command: "pair -r {repo} --recovery-kit {here}/other-kit",
            code: 12,
            names: "not the one that the recovery kit is for",
            advises: "take the kit of that repository",
            leaves: &[],
        },
        Row {
            name: "a kit with a typing error",
            set_up: |scene| {
                edit(&scene.path("kit.txt"), |text| {
                    let kit = String::from_utf8_lossy(text).into_owned();
                    let at = kit.find("Fingerprint:").unwrap() + 20;
                    text[at] = if text[at] == b'q' { b'p' } else { b'q' };
                });
            },
            command: "pair -r {repo} --recovery-kit {kit}",
            code: 2,
            names: "{kit}: recovery kit, line 25",
            advises: "type it again",
            leaves: &[],
        },
        Row {
            name: "a file that is no kit",
            set_up: nothing,
            command: "pair -r {repo} --recovery-kit {source}/large.bin",
            code: 1,
            names: "{source}/large.bin",
            advises: "too long",
            leaves: &[],
        },
        Row {
            name: "a kit without its repository",
            set_up: nothing,
            command: "pair --recovery-kit {kit}",
            code: 2,
            names: "a repository in a directory",
            advises: "say with -r where",
            leaves: &[],
        },
    ]);
}

fn forget_key(scene: &mut Scene) {
    fs::remove_dir_all(scene.path("config/state/keys")).unwrap();
}

/// A row about damage that leaves everything as it is.
fn found(
    name: &'static str,
    set_up: fn(&mut Scene),
    command: &'static str,
    names: &'static str,
    advises: &'static str,
) -> Row {
    Row { name, set_up, command, code: 20, names, advises, leaves: &[] }
}

#[test]
fn a_flipped_bit_is_told_as_a_damaged_block_or_by_the_snapshot_that_lost_what_was_in_it() {
    let mut scene = Scene::of(&Template::make());
    flipped_content(&mut scene);
    let told = scene.run("check -r {repo}");
    // Which of the two depends on whether the repository knew that the block was durable.
    if told.stdout.contains("damaged block") {
        tells(&told, 20, "damaged block", "its bytes do not have its hash");
    } else {
        tells(&told, 20, &scene.fill("{snapshot}"), "damaged object");
    }
}

#[test]
fn damage() {
    hold(&[
        found(
            "a flipped bit in a file of the snapshot",
            flipped_content,
            "check -r {repo} --verify",
            "{taken}/large.bin",
            "no good copy",
        ),
        found("a cut pack", cut_content, "check -r {repo}", "{snapshot}", "no copy of it is left"),
        found(
            "a lost pack",
            lost_content,
            "check -r {repo}",
            "{snapshot}",
            "no copy of it is left",
        ),
        Row {
            name: "a lost pack that a file is restored from",
            set_up: lost_content,
            command: "restore -r {repo} latest --target {target}",
            code: 20,
            names: "{taken}/large.bin",
            advises: "`holdall check --verify all` finds out what is affected",
            leaves: &["target"],
        },
        found(
            "lost trees",
            lost_trees,
            "ls -r {repo} latest",
            "1 objects are missing",
            "holdall check --verify all",
        ),
        Row {
            name: "lost trees that are restored from",
            set_up: lost_trees,
            command: "restore -r {repo} latest --target {target}",
            code: 20,
            names: "is damaged",
            advises: "`holdall check --verify all` finds out what is affected",
            leaves: &["target"],
        },
        found("a damaged record", flipped_record, "check -r {repo}", "record", "damaged record"),
        found(
            "a damaged record that is verified",
            flipped_record,
            "check -r {repo} --verify",
            RECORD,
            "damaged record",
        ),
        found(
            "a damaged record that is listed",
            flipped_record,
            "snapshots -r {repo}",
            RECORD,
            PUT_BACK,
        ),
        found(
            "a record at another place than its own",
            |scene| {
                let record = only_file(&scene.path("repo/records"));
                fs::rename(&record, record.with_file_name("00000000000000ff")).unwrap();
            },
            "snapshots -r {repo}",
            "records/00000000000000ff in the repository is damaged: it is the record 0",
            LOST,
        ),
        found("a lost record", lost_record, "snapshots -r {repo}", "{snapshot}", LOST),
        found(
            "a lost record that is looked for",
            lost_record,
            "check -r {repo}",
            "{snapshot}",
            LOST,
        ),
        found(
            "a lost configuration",
            |scene| lose_for_good(scene, &scene.path("repo/config")),
            "snapshots -r {repo}",
            "{repo}/config",
            "is damaged",
        ),
        found(
            "lost wrappings",
            |scene| lose_for_good(scene, &only_file(&scene.path("repo/wrappings"))),
            "snapshots -r {repo}",
            "{repo}/wrappings",
            "no set of wrappings is there",
        ),
    ]);
}

/// Loses a file, its other copy, and what this computer keeps of it.
fn lose_for_good(scene: &Scene, file: &Path) {
    fs::remove_file(file).unwrap();
    fs::remove_dir_all(scene.path("repo/spare")).unwrap();
    fs::remove_dir_all(scene.path("config/state/clear-parts")).unwrap();
}

const RECORD: &str = "records/00000000";
const PUT_BACK: &str = "put back a copy of that file";

#[test]
fn a_damaged_record_keeps_no_other_from_being_used() {
    let row = |name, command, names, leaves| Row {
        leaves,
        ..found(name, older_record, command, names, PUT_BACK)
    };
    hold(&[
        row("the others are listed", "snapshots -r {repo}", "{source}", &[]),
        row(
            "the others are gone through",
            "ls -r {repo} latest {source}",
            "{source}/large.bin",
            &[],
        ),
        row("the others are searched", "find -r {repo} large.bin", "{source}/large.bin", &[]),
        row(
            "another is restored",
            "restore -r {repo} latest --target {target}",
            RECORD,
            &["target"],
        ),
        row("a backup goes on", "backup -r {repo} {source}", "\nsnapshot ", BACKED_UP),
        row(
            "a backup goes on that is not complete",
            "backup -r {repo} {source} {here}/none",
            "{here}/none",
            BACKED_UP,
        ),
        row("another is tagged", "tag -r {repo} latest --add kept", RECORD, BACKED_UP),
    ]);
}

/// The record of the snapshot that was there is damaged; a whole one came behind it.
fn older_record(scene: &mut Scene) {
    let older = only_file(&scene.path("repo/records"));
    scene.run("backup -r {repo} {source}").expect(0);
    flip(&older);
    // It would be put back from there.
    fs::remove_dir_all(scene.path("cache")).unwrap();
}

#[test]
fn damage_to_the_newest_record_is_no_roll_back() {
    let scene = Scene::of(&Template::make());
    let older = only_file(&scene.path("repo/records"));
    scene.run("backup -r {repo} {source}").expect(0);
    let is_newer = |file: &std::path::PathBuf| *file != older;
    let newer = files_below(&scene.path("repo/records")).into_iter().find(is_newer).unwrap();
    let whole = fs::read(&newer).unwrap();
    flip(&newer);
    // It would be put back from there.
    fs::remove_dir_all(scene.path("cache")).unwrap();
    for command in ["snapshots -r {repo} --json", "backup -r {repo} {source} --json"] {
        let told = scene.run(command).expect(20);
        assert!(!told.stdout.contains("rolled back"), "{}", told.stdout);
        let damaged = told.of_type("error").pop().unwrap();
        let named = damaged["message"].as_str().unwrap();
        assert!(named.contains(newer.file_name().unwrap().to_str().unwrap()), "{named}");
    }
    assert_eq!(scene.run("snapshots -r {repo} --json").of_type("snapshot").len(), 2);
    // What comes back comes back.
    edit(&newer, |bytes| *bytes = whole);
    assert_eq!(scene.run("snapshots -r {repo} --json").expect(0).of_type("snapshot").len(), 3);
    scene.run("backup -r {repo} {source}").expect(0);
}

#[test]
fn damage_to_a_closed_pack() {
    let template = Template::with_a_closed_pack();
    let mut rows = Vec::new();
    for (name, set_up, reason) in [
        ("a flipped bit", (|scene| flip(&closed_pack(scene))) as fn(&mut Scene), "damaged block"),
        (
            "a cut pack",
            |scene| edit(&closed_pack(scene), |bytes| bytes.truncate(1 << 20)),
            "damaged pack",
        ),
        (
            "a lost pack",
            |scene| fs::remove_file(closed_pack(scene)).unwrap(),
            "no copy of it is left",
        ),
    ] {
        rows.push(found(name, set_up, "check -r {repo}", reason, "1 snapshot, "));
        let verify = "check -r {repo} --verify";
        rows.push(found(name, set_up, verify, "{taken}/huge.bin", "damaged path"));
        let restore = "restore -r {repo} latest --target {target}";
        let left_out = found(name, set_up, restore, "{taken}/huge.bin", "could not be restored");
        rows.push(Row { leaves: &["target"], ..left_out });
    }
    hold_with(&template, &rows);
}

fn closed_pack(scene: &Scene) -> PathBuf {
    only_file(&scene.path("repo/packs"))
}

/// The largest file of the repository holds content.
fn flipped_content(scene: &mut Scene) {
    let size = |file: &PathBuf| fs::metadata(file).unwrap().len();
    flip(&files_below(&scene.path("repo")).into_iter().max_by_key(size).unwrap());
}

fn cut_content(scene: &mut Scene) {
    edit(&tail_of_chunks(scene, ".payload"), |bytes| bytes.truncate(1000));
}

fn lost_content(scene: &mut Scene) {
    lose(scene, "chunks");
}

/// Trees are in the cache, too.
fn lost_trees(scene: &mut Scene) {
    lose(scene, "nodes");
    fs::remove_dir_all(scene.path("cache")).unwrap();
}

/// Removes what holds blocks of a kind.
fn lose(scene: &Scene, kind: &str) {
    let tails = files_below(&scene.path("repo/tails"));
    for tail in tails.iter().filter(|tail| tail.to_str().unwrap().contains(kind)) {
        fs::remove_file(tail).unwrap();
    }
}

fn flipped_record(scene: &mut Scene) {
    flip(&only_file(&scene.path("repo/records")));
}

fn lost_record(scene: &mut Scene) {
    fs::remove_file(only_file(&scene.path("repo/records"))).unwrap();
}
