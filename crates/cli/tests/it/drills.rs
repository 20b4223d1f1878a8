//! A drill restores a sample, says what is wrong with it and how long everything takes, and leaves nothing behind.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use holdall_testkit::{Process, Random};
use rustix::process::Signal;

use crate::house::{Machine, Outcome, files_below, is_root, send_signal, small_tree, text};
use crate::mounts::Mount;
use crate::repair::flip;

/// A machine with a repository beside its empty folder `work`, and a source that was backed up.
fn backed_up(fill: impl FnOnce(&Path)) -> Machine {
    let machine = Machine::new();
    let (source, work) = (machine.path("source"), machine.path("work"));
    small_tree(&source);
    fill(&source);
    fs::create_dir(work).unwrap();
    let repo = machine.path("repo");
    machine.init(&["-r", text(&repo)]);
    machine.ok(["backup", "-r", text(&repo), text(&source)]);
    machine
}

fn drill(machine: &Machine, more: &[&str]) -> Command {
    let repo = machine.path("repo");
    machine.command([&["check", "--drill", "-r", text(&repo)], more].concat())
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn a_sound_repository_is_restored_as_it_was_and_nothing_stays() {
    let machine = backed_up(|source| {
        let sparse = fs::File::create(source.join("sparse")).unwrap();
        sparse.set_len(40 << 20).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&sparse, &[7; 99_999], 9 << 20).unwrap();
        fs::write(source.join("large"), Random::new(1).bytes(20 << 20)).unwrap();
    });
    let work = machine.path("work");
    let target = ["--target", text(&work)];
    let object =
        Outcome::of(&mut drill(&machine, &[&target[..], &["--json"]].concat())).expect(0).summary();
    let found = &object["drill"];
    assert_eq!(object["damaged"], serde_json::json!([]));
    assert_eq!((&found["items_same"], &found["left_out"]), (&found["items"], &0.into()), "{found}");
    assert_eq!((&found["items"], &found["bytes"]), (&found["items_total"], &found["bytes_total"]));
    assert!(found["restore_seconds"].as_f64() > Some(0.0), "{found}");
    assert!(found["verdict"].is_object(), "{found}");
    assert!(is_empty(&work));

    // Where nothing is said, it is restored beside the repository.
    let beside = |folder: &Path| fs::read_dir(folder).unwrap().count();
    let before = beside(&machine.path(""));
    let said = Outcome::of(drill(&machine, &[]).env_remove("TMPDIR")).expect(0).stdout;
    assert!(said.contains("all are as the snapshot says"), "{said}");
    assert!(said.contains("a restore of all of it takes about"), "{said}");
    assert!(!said.contains("0 snapshots"), "{said}");
    assert_eq!(beside(&machine.path("")), before);
}

#[test]
fn a_damaged_block_is_found_with_the_file_that_it_hits() {
    let machine = backed_up(|source| {
        // Most of the pack, so that its middle is of this file.
        fs::write(source.join("hit"), Random::new(1).bytes(16 << 20)).unwrap();
    });
    let packs = files_below(&machine.path("repo/packs")).into_iter();
    let tails = files_below(&machine.path("repo/tails")).into_iter();
    let largest = packs.chain(tails).max_by_key(|file| fs::metadata(file).unwrap().len());
    let largest = largest.unwrap();
    flip(&largest, fs::metadata(&largest).unwrap().len() as usize / 2);
    let work = machine.path("work");
    let said = Outcome::of(&mut drill(&machine, &["--target", text(&work)])).expect(20).stdout;
    assert!(
        said.contains(&format!("damaged path {}", text(&machine.path("source/hit")))),
        "{said}"
    );
    assert!(!said.contains("all are"), "{said}");
    assert!(is_empty(&work));
}

#[test]
fn without_room_nothing_is_restored() {
    let machine = backed_up(|_| ());
    let Some(disk) = Mount::in_memory(&machine.path("disk"), 32 << 20) else { return };
    let said = Outcome::of(&mut drill(&machine, &["--target", text(disk.point())])).expect(1);
    assert!(said.stderr.contains("free") && said.stderr.contains("--target"), "{}", said.stderr);
    assert!(is_empty(disk.point()));
    let missing = machine.path("missing");
    let said = Outcome::of(&mut drill(&machine, &["--target", text(&missing)])).expect(1);
    assert!(said.stderr.contains("missing"), "{}", said.stderr);
    assert!(!missing.exists());
}

#[test]
fn a_disk_that_is_full_all_the_same_ends_it_and_gets_its_room_back() {
    let machine = backed_up(|source| {
        (0..200).for_each(|at| fs::write(source.join(format!("{at}")), "small").unwrap());
    });
    // Room for all bytes, and not for that many files.
    let disk = Mount::ext4_made_with(&machine.path("disk"), 128 << 20, &["-N", "100"]);
    let Some(disk) = disk else { return };
    let said = Outcome::of(&mut drill(&machine, &["--target", text(disk.point())])).expect(1);
    assert!(said.stderr.contains("make room"), "{}", said.stderr);
    let left = files_below(disk.point());
    assert!(left.is_empty(), "{left:?}");
    let folders = fs::read_dir(disk.point()).unwrap().flatten().map(|entry| entry.file_name());
    assert_eq!(folders.collect::<Vec<_>>(), ["lost+found"]);
}

#[test]
fn a_drill_that_is_interrupted_leaves_nothing() {
    let machine = backed_up(|source| {
        let bytes = Random::new(1).bytes(128 << 20);
        fs::write(source.join("large"), bytes).unwrap();
    });
    let work = machine.path("work");
    let process = Process::spawn(&mut drill(&machine, &["--target", text(&work)])).unwrap();
    let begun = Instant::now();
    while !files_below(&work).iter().any(|file| file.ends_with("large")) {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
    send_signal(&process, Signal::INT);
    let said = Outcome::of_process(process).expect(130).stdout;
    assert!(!said.contains("drill"), "{said}");
    assert!(is_empty(&work));
}

#[test]
fn what_only_root_may_restore_is_noted_and_is_no_damage() {
    const AS_NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    if !is_root("make what an ordinary user may not restore") {
        return;
    }
    let machine = backed_up(|source| {
        use std::os::unix::fs::PermissionsExt;
        fs::write(source.join("closed"), "closed").unwrap();
        fs::set_permissions(source.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    });
    let top = machine.path("");
    let given = Command::new("chown").args(["-R", "-h", "65534:65534"]).arg(&top).status().unwrap();
    assert!(given.success());
    let repo = machine.path("repo");
    let args = ["check", "--drill", "--json", "-r", text(&repo), "--target", text(&top)];
    let object = machine.run_by(&AS_NOBODY, args).expect(0).summary();
    let found = &object["drill"];
    let notes = found["notes"].to_string();
    assert!(notes.contains("owners") && notes.contains("1 item could not be compared"), "{notes}");
    assert_eq!((&object["damaged"], &found["errors"]), (&serde_json::json!([]), &0.into()));
    assert_eq!(found["items_same"].as_u64().unwrap() + 1, found["items"].as_u64().unwrap());
    let left = fs::read_dir(&top).unwrap().flatten().map(|entry| entry.file_name());
    assert!(!left.into_iter().any(|name| name.to_string_lossy().contains("holdall-work")));
}
