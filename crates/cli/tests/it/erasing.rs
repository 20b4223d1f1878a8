//! `holdall erase` destroys just the repository that was meant, for good, and says so to whoever comes later.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use holdall_testkit::has_strace;

use crate::house::{Machine, Outcome, Server, files_below, is_root, run_by, small_tree, text};
use crate::mounts::namespace;

/// A machine with a repository in a directory that has a snapshot.
fn backed_up() -> (Machine, PathBuf, PathBuf) {
    let machine = Machine::new();
    let (source, repo) = (machine.path("source"), machine.path("repo"));
    small_tree(&source);
    machine.init(&["-r", text(&repo)]);
    machine.ok(["backup", "-r", text(&repo), text(&source)]);
    (machine, repo, source)
}

/// The fingerprint that is asked for.
fn fingerprint(machine: &Machine, repo: &str) -> String {
    let said = machine.run(["erase", "-r", repo]).expect(2);
    assert!(said.stdout.contains("1 snapshot"), "{}", said.stdout);
    let after = said.stderr.split("--confirm ").last().expect("what to type");
    after.split_whitespace().next().expect("a fingerprint").to_owned()
}

#[test]
fn a_repository_is_destroyed_once_its_fingerprint_is_typed_and_none_begins_anew_there() {
    let (machine, repo, source) = backed_up();
    let (repo_text, before) = (text(&repo), files_below(&repo).len());
    let print = fingerprint(&machine, repo_text);
    let other = machine.run(["erase", "-r", repo_text, "--confirm", "AAAA-BBBB"]).expect(2);
    assert!(other.stderr.contains(&print), "{}", other.stderr);
    assert_eq!(files_below(&repo).len(), before, "nothing was destroyed");

    let erase = ["erase", "-r", repo_text, "--confirm", &print.to_lowercase(), "--passes", "2"];
    let summary = machine.summary(erase);
    assert!(summary["files"].as_u64() > Some(3) && summary["passes"] == 2, "{summary}");
    let mut left: Vec<_> =
        fs::read_dir(&repo).unwrap().flatten().map(|one| one.file_name()).collect();
    left.sort();
    assert_eq!(left, ["erased", "holdall-repository", "lock"]);
    assert!(
        !machine
            .path("config/state/clear-parts")
            .read_dir()
            .is_ok_and(|mut all| all.next().is_some())
    );

    // Whoever knew it is told, and nothing of what is kept here puts it back.
    for args in [
        &["snapshots", "-r", repo_text][..],
        &["backup", "-r", repo_text, text(&source)],
        &["check", "--repair", "-r", repo_text],
        &["restore", "-r", repo_text, "latest", "--target", text(&machine.path("target"))],
    ] {
        let said = machine.run(args).expect(10).stderr;
        assert!(said.contains("which was erased on 20"), "{args:?}: {said}");
    }
    let init = machine.run(["init", "-r", repo_text]);
    assert_eq!(init.code, Some(1), "{}", init.stderr);
    assert!(init.stderr.contains("none begins anew there"), "{}", init.stderr);
    // What was erased is erased again, without a password.
    machine.ok(["erase", "-r", repo_text, "--confirm", &print]);
    fs::remove_dir_all(&repo).unwrap();
    machine.init(&["-r", repo_text]);
    machine.ok(["backup", "-r", repo_text, text(&source)]);
}

#[test]
fn nobody_erases_with_a_wrong_password_or_over_the_wire() {
    let (machine, repo, _) = backed_up();
    let print = fingerprint(&machine, text(&repo));
    let stranger = Machine::new().with_password(Some("another"));
    let args = ["erase", "-r", text(&repo), "--confirm", &print];
    stranger.run(args).expect(12);
    machine.ok(["snapshots", "-r", text(&repo)]);

    let server = Server::start(&machine.path("server"));
    let paired = Machine::new();
    paired.pair_with(&server);
    let address = format!("https://{}", server.address());
    let said = paired.run(["erase", "-r", &address, "--confirm", &print]).expect(13).stderr;
    assert!(said.contains("holdall admin remove"), "{said}");
}

/// Files of somebody else, in folders that are called as a repository's are.
const OTHERS: [&str; 5] = [
    "records/beatles.mp3",
    "tmp/photo.jpg",
    "sessions/therapy.txt",
    "quarantine/inner/config",
    "packs/00/song.mp3",
];

fn put(file: &Path) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, "mine").unwrap();
}

#[test]
fn files_of_others_in_folders_called_as_its_own_keep_it_from_being_erased_or_made() {
    let (machine, repo, _) = backed_up();
    let print = fingerprint(&machine, text(&repo));
    let before = files_below(&repo);
    for other in OTHERS {
        let file = repo.join(other);
        put(&file);
        let erase = machine.run(["erase", "-r", text(&repo), "--confirm", &print]).expect(1);
        assert!(erase.stderr.contains("none of the repository's"), "{other}: {}", erase.stderr);
        assert_eq!(fs::read(&file).unwrap(), b"mine");
        fs::remove_file(&file).unwrap();
        let _ = fs::remove_dir(repo.join("quarantine/inner"));

        let new = machine.path(&format!("new-{}", other.replace('/', "-")));
        put(&new.join(other));
        let init = machine.run(["init", "-r", text(&new)]).expect(1);
        assert!(init.stderr.contains("neither empty nor a repository"), "{other}: {}", init.stderr);
        assert_eq!(files_below(&new), [new.join(other)]);
    }
    assert_eq!(files_below(&repo), before, "nothing was destroyed");
    machine.ok(["erase", "-r", text(&repo), "--confirm", &print]);
}

#[test]
fn what_is_mounted_in_it_keeps_it_from_being_erased() {
    let (machine, repo, _) = backed_up();
    if !is_root("bind a folder") {
        return;
    }
    let print = fingerprint(&machine, text(&repo));
    let photos = machine.path("photos");
    fs::create_dir(&photos).unwrap();
    let record = files_below(&repo.join("records")).remove(0);
    let single = photos.join("0011223344556677");
    fs::write(&single, "mine").unwrap();
    let bind = |from: &Path, to: &Path| format!("mount --bind {} {}", text(from), text(to));
    for script in [bind(&photos, &repo.join("tombstones")), bind(&single, &record)] {
        let args = ["erase", "-r", text(&repo), "--confirm", &print];
        let refused = Outcome::of(&mut namespace(&machine, &script, &args)).expect(1).stderr;
        assert!(refused.contains("is another file system"), "{refused}");
        assert_eq!(fs::read(&single).unwrap(), b"mine");
    }
    machine.ok(["snapshots", "-r", text(&repo)]);
}

#[test]
fn a_users_own_files_called_as_its_own_are_not_written_over() {
    let (machine, repo, _) = backed_up();
    let print = fingerprint(&machine, text(&repo));
    let (mine, erased) = (machine.path("mine"), repo.join("erased"));
    fs::write(&mine, "mine").unwrap();
    fs::hard_link(&mine, &erased).unwrap();
    let refused = machine.run(["erase", "-r", text(&repo), "--confirm", &print]).expect(1).stderr;
    assert!(refused.contains("none of the repository's"), "{refused}");
    assert_eq!(fs::read(&mine).unwrap(), b"mine");
    fs::remove_file(&erased).unwrap();
    machine.ok(["erase", "-r", text(&repo), "--confirm", &print]);

    for name in ["config", "probes"] {
        let new = machine.path(&format!("new-{name}"));
        put(&new.join(name));
        let refused = machine.run(["init", "-r", text(&new)]).expect(1).stderr;
        assert!(refused.contains("neither empty nor a repository"), "{refused}");
        assert_eq!(fs::read(new.join(name)).unwrap(), b"mine");
    }
}

#[test]
fn a_half_done_erase_without_a_sound_marker_is_neither_undone_nor_at_an_end() {
    if !has_strace() {
        return;
    }
    for marker in [None, Some("damaged")] {
        let (machine, repo, _) = backed_up();
        let print = fingerprint(&machine, text(&repo));
        let args = ["erase", "-r", text(&repo), "--confirm", &print];
        let trace = machine.path("trace");
        let kill = "inject=unlinkat:signal=KILL:when=1";
        let by = ["strace", "-f", "-o", text(&trace), "-e", "trace=unlinkat", "-e", kill];
        let killed: &mut Command = &mut run_by(&by, &machine.command(args));
        let _ = Outcome::of(killed);
        assert!(repo.join("erased").exists() && repo.join("config").exists());
        let path = repo.join("holdall-repository");
        match marker {
            None => fs::remove_file(path).unwrap(),
            Some(text) => fs::write(path, text).unwrap(),
        }
        let other = Machine::new();
        let said = other.run(["snapshots", "-r", text(&repo)]).expect(10).stderr;
        assert!(said.contains("which was erased on 20"), "{said}");
        assert!(!said.contains("holdall init"), "{said}");
        let said = other.run(["erase", "-r", text(&repo)]).expect(2);
        assert!(said.stdout.contains("begun to be erased"), "{}", said.stdout);
        other.ok(args);
        assert_eq!(files_below(&repo).len(), 3);
        let said = other.run(["erase", "-r", text(&repo)]).expect(0);
        assert!(said.stdout.contains("nothing of it is left"), "{}", said.stdout);
    }
}

#[test]
fn what_says_that_another_one_was_erased_does_not_erase_this_one() {
    let (machine, gone, source) = backed_up();
    let print = fingerprint(&machine, text(&gone));
    machine.ok(["erase", "-r", text(&gone), "--confirm", &print]);
    let live = machine.path("live");
    machine.init(&["-r", text(&live)]);
    machine.ok(["backup", "-r", text(&live), text(&source)]);
    let marker = fs::read(live.join("holdall-repository")).unwrap();
    for name in ["erased", "holdall-repository"] {
        fs::copy(gone.join(name), live.join(name)).unwrap();
    }
    let before = files_below(&live);
    let stranger = Machine::new().with_password(Some("wrong"));
    let args = ["erase", "-r", text(&live), "--confirm", &print];
    let refused = stranger.run(args).expect(1).stderr;
    assert!(refused.contains("another repository"), "{refused}");
    assert_eq!(files_below(&live), before);
    fs::write(live.join("holdall-repository"), marker).unwrap();
    machine.ok(["snapshots", "-r", text(&live)]);
}
