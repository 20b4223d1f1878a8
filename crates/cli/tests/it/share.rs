//! An embedded repository on a network share, over a real sshfs: what local disks can do may be
//! missing there, and locks hold on one computer only.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use holdall_testkit::{CompareOptions, Process, Random, compare_trees};
use rustix::process::{Pid, Signal, kill_process};

use crate::house::{Machine, small_tree, text};
use crate::mounts::Share;

/// More than a pack: closing one is part of what is tried.
const NEW_BYTES: usize = 56 << 20;

/// Files that do not compress, `NEW_BYTES` in all.
fn write_new(dir: &Path, seed: u64) {
    fs::create_dir_all(dir).expect("a folder");
    let mut random = Random::new(seed);
    for number in 0..8 {
        let bytes = random.bytes(NEW_BYTES / 8);
        fs::write(dir.join(format!("new-{seed}-{number}")), bytes).expect("room");
    }
}

/// A backup that has begun to store.
fn begun(machine: &Machine, repo: &str, source: &str) -> Process {
    let mut command = machine.command(["backup", "-r", repo, source, "--json"]);
    let mut process = Process::spawn(&mut command).expect("it starts");
    process.wait_for_line("{\"message_type\":\"status\"").expect("it begins");
    process
}

fn signal(process: &Process, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(process.id()).expect("a number")).expect("a process");
    kill_process(pid, signal).expect("it lives");
}

fn check_restores(machine: &Machine, repo: &str, source: &Path, target: &Path) {
    let from = format!("latest:{}", text(source));
    machine.ok(["restore", "-r", repo, &from, "--target", text(target)]);
    assert_eq!(compare_trees(source, target, &CompareOptions::default()), []);
    fs::remove_dir_all(target).expect("it can be removed");
}

fn check_is_whole(machine: &Machine, repo: &str) -> serde_json::Value {
    let checked = machine.summary(["check", "-r", repo, "--scrub", "--verify", "all"]);
    assert_eq!(checked["damaged"], serde_json::json!([]));
    checked
}

/// Everything once, with a kill in the middle; returns what the place is said to lack.
fn whole_cycle(repo: &Path) -> Vec<String> {
    let machine = Machine::new();
    let (source, target) = (machine.path("source"), machine.path("target"));
    let repo = text(repo);
    small_tree(&source);
    let made = machine.init(&["-r", repo, "--json"]).summary();
    machine.ok(["backup", "-r", repo, text(&source)]);
    let again = machine.summary(["backup", "-r", repo, text(&source)]);
    assert_eq!((&again["files_new"], &again["files_changed"]), (&0.into(), &0.into()));
    write_new(&source, 1);
    let mut writer = begun(&machine, repo, text(&source));
    // One that is killed before it says in the lease who it is may as well live elsewhere.
    let begun_at = Instant::now();
    while !stopped_holding(&writer, &Path::new(repo).join("lease")) {
        assert!(begun_at.elapsed() < Duration::from_secs(60), "it never held the lease");
        std::thread::sleep(Duration::from_millis(2));
    }
    writer.kill().expect("it lived");
    // The process that held the lease is known to have ended: nobody waits for it.
    machine.ok(["backup", "-r", repo, text(&source)]);
    check_restores(&machine, repo, &source, &target);
    let checked = check_is_whole(&machine, repo);
    assert_eq!(checked["snapshots"], 3);
    assert_eq!(checked["lacking"], made["lacking"]);
    let lacking = checked["lacking"].as_array().expect("a list").iter();
    lacking.map(|sentence| sentence.as_str().expect("a sentence").to_owned()).collect()
}

#[test]
fn a_repository_on_a_share_works_and_says_what_the_share_can_not_do() {
    let Some(share) = Share::new() else { return };
    let mount = share.mount("client", &[]);
    let lacking = whole_cycle(&mount.point().join("repo"));
    assert!(matches!(&lacking[..], [lease] if lease.contains("lease file")), "{lacking:?}");
}

#[test]
fn a_share_that_can_neither_link_nor_rename_without_replacing_will_do() {
    let Some(share) = Share::new() else { return };
    let mount = share.mount("client", &["disable_hardlink"]);
    let lacking = whole_cycle(&mount.point().join("repo"));
    assert!(lacking.iter().any(|sentence| sentence.contains("neither link")), "{lacking:?}");
}

#[test]
fn of_two_clients_of_a_share_one_writes_and_a_writer_that_slept_publishes_nothing() {
    let Some(share) = Share::new() else { return };
    let first = share.mount("first", &[]);
    let (sleeper, other) = (Machine::new(), Machine::new());
    let repo_of = |mount: &crate::mounts::Mount| text(&mount.point().join("repo")).to_owned();
    let (repo, source) = (repo_of(&first), sleeper.path("source"));
    small_tree(&source);
    sleeper.init(&["-r", &repo]);
    sleeper.ok(["backup", "-r", &repo, text(&source)]);
    // Long enough to be met while it writes.
    (1..5).for_each(|seed| write_new(&source, seed));
    let mut sleeping = begun(&sleeper, &repo, text(&source));
    while !stopped_holding(&sleeping, &share.served().join("repo/lease")) {
        sleeping.wait_for_line("{\"message_type\":\"status\"").expect("it goes on");
    }

    // A mount of its own sees at once who holds the lease.
    let second = share.mount("second", &[]);
    let others = other.path("source");
    write_new(&others, 9);
    let said = other.run(["backup", "-r", &repo_of(&second), text(&others)]).expect(11);
    assert!(said.stderr.contains(&holdall_sys::host::host_name()), "{}", said.stderr);
    assert!(said.stderr.contains("last heard of"), "{}", said.stderr);
    // Whoever reads is not in the way.
    other.ok(["snapshots", "-r", &repo_of(&second)]);

    make_old(&share.served().join("repo/lease"));
    let third = share.mount("third", &[]);
    other.ok(["backup", "-r", &repo_of(&third), text(&others)]);
    signal(&sleeping, Signal::CONT);
    let (status, said) = sleeping.wait().expect("it ends");
    assert_eq!(status.code(), Some(11), "{said:?}");

    let fourth = share.mount("fourth", &[]);
    let repo = repo_of(&fourth);
    assert_eq!(check_is_whole(&other, &repo)["snapshots"], 2);
    check_restores(&other, &repo, &others, &other.path("target"));
    sleeper.ok(["backup", "-r", &repo, text(&source)]);
    check_restores(&sleeper, &repo, &source, &sleeper.path("target"));
    check_is_whole(&sleeper, &repo);
}

/// The lock of who writes on the disk itself does not reach the other, whose own says nothing there.
#[test]
fn a_writer_on_the_disk_of_a_share_stops_when_another_comes_over_the_share_first() {
    let Some(share) = Share::new() else { return };
    let (local, other) = (Machine::new(), Machine::new());
    let here = share.served().join("repo");
    let (repo, source) = (text(&here).to_owned(), local.path("source"));
    small_tree(&source);
    local.init(&["-r", &repo]);
    local.ok(["backup", "-r", &repo, text(&source)]);
    assert!(!here.join("lease").exists());
    // Long enough to be met while it writes, at first to the tail that is there.
    let tail = holdall_testkit::only_file(&here.join("tails"), "chunks", "payload");
    let bytes = || fs::metadata(&tail).map_or(0, |tail| tail.len());
    let before = bytes();
    (1..4).for_each(|seed| write_new(&source, seed));
    let mut command = local.command(["backup", "-r", &repo, text(&source)]);
    let mut writing = Process::spawn(&mut command).expect("it starts");
    let begun_at = Instant::now();
    while bytes() == before {
        assert!(begun_at.elapsed() < Duration::from_secs(60), "it never wrote");
        std::thread::sleep(Duration::from_millis(2));
    }
    signal(&writing, Signal::STOP);

    let mount = share.mount("first", &[]);
    let there = text(&mount.point().join("repo")).to_owned();
    let others = other.path("source");
    write_new(&others, 9);
    other.ok(["backup", "-r", &there, text(&others)]);
    signal(&writing, Signal::CONT);
    let (status, said) = writing.wait().expect("it ends");
    assert_eq!(status.code(), Some(11), "{said:?}");

    assert_eq!(check_is_whole(&other, &there)["snapshots"], 2);
    check_restores(&other, &there, &others, &other.path("target"));
    local.ok(["backup", "-r", &repo, text(&source)]);
    check_restores(&local, &repo, &source, &local.path("target"));
    check_is_whole(&local, &repo);
}

/// Stops a writer that holds the lease; one that does not hold it yet goes on.
fn stopped_holding(writer: &Process, lease: &Path) -> bool {
    signal(writer, Signal::STOP);
    let is_held = |file: &std::path::PathBuf| {
        fs::read_to_string(file).is_ok_and(|text| text.contains("process"))
    };
    let holds = matches!(&crate::house::files_below(lease)[..], [file] if is_held(file));
    if !holds {
        signal(writer, Signal::CONT);
    }
    holds
}

/// Makes the lease look as if it was not renewed for long enough.
fn make_old(folder: &Path) {
    let files = crate::house::files_below(folder);
    let [lease] = &files[..] else { panic!("one holds it: {files:?}") };
    let file = fs::OpenOptions::new().write(true).open(lease).expect("it is there");
    let now = file.metadata().and_then(|found| found.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    file.set_modified(now - Duration::from_secs(301)).expect("ours");
}
