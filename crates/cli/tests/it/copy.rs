//! Snapshots go from one repository into another, between directories and servers, and are what they
//! were.

use std::fs;
use std::path::Path;

use holdall_testkit::{
    CompareOptions, FidelitySizes, Process, Random, compare_trees, fidelity_tree,
};

use crate::house::{Machine, Server, disk_bytes, files_below, small_tree};
use crate::mounts::ManyFiles;
use crate::repair::grow_old;

/// A machine with a password file for each of two repositories in directories.
struct Two {
    machine: Machine,
    from: String,
    to: String,
}

impl Two {
    fn new() -> Self {
        Self::of(Machine::new().with_password(None))
    }

    fn of(machine: Machine) -> Self {
        let [from, to] = ["from", "to"].map(|name| text(&machine.path(name)));
        for (repo, password) in [(&from, "one"), (&to, "two")] {
            let file = machine.path(password);
            fs::write(&file, password).unwrap();
            machine.init(&["-r", repo, "--password-file", &text(&file)]);
        }
        Self { machine, from, to }
    }

    /// Runs a command with a repository's password.
    fn at(&self, repo: &str, args: &[&str]) -> serde_json::Value {
        let file = self.machine.path(if repo == self.from { "one" } else { "two" });
        let file = text(&file);
        let named = ["-r", repo, "--password-file", &file];
        self.machine.summary(args.iter().chain(&named))
    }

    fn copy_args(&self) -> Vec<String> {
        let [one, two] = ["one", "two"].map(|name| text(&self.machine.path(name)));
        ["copy", "--from", &self.from, "--from-password-file", &one, "-r", &self.to]
            .iter()
            .chain(&["--password-file", &two])
            .map(|arg| (*arg).to_owned())
            .collect()
    }

    fn copy(&self) -> serde_json::Value {
        self.machine.summary(self.copy_args())
    }

    fn check(&self, repo: &str) {
        let checked = self.at(repo, &["check", "--scrub", "--verify", "all"]);
        assert_eq!(checked["damaged"], serde_json::json!([]));
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

#[test]
fn everything_a_file_system_can_hold_survives_copies_to_a_server_and_back() {
    let place = ManyFiles::new();
    let two = Two::of(place.machine("machine"));
    let machine = &two.machine;
    let source = machine.path("source");
    fs::create_dir(&source).unwrap();
    fidelity_tree(&source, &FidelitySizes::small()).expect("the tree can be made");
    let source_text = text(&source);
    two.at(&two.from, &["backup", &source_text, "--tag", "red", "--host", "attic"]);

    let server = Server::start(&machine.path("data"));
    machine.pair_with(&server);
    let one = text(&machine.path("one"));
    let there = ["copy", "--from", &two.from, "--from-password-file", &one];
    let copied = machine.summary(there);
    assert_eq!((&copied["copied"], &copied["errors"]), (&1.into(), &0.into()), "{copied}");
    let address = format!("https://{}", server.address());
    let file = text(&machine.path("two"));
    let back = ["copy", "--from", &address, "-r", &two.to, "--password-file", &file];
    assert_eq!(machine.summary(back)["copied"], 1);

    let target = machine.path("target");
    let from = format!("latest:{source_text}");
    two.at(&two.to, &["restore", &from, "--target", &text(&target)]);
    let root = holdall_sys::users::effective_uid() == 0;
    let options = CompareOptions { owners: root, ..CompareOptions::default() };
    let differences = compare_trees(&source, &target, &options);
    assert!(differences.is_empty(), "{:#?}", &differences[..differences.len().min(20)]);
    for args in [vec!["check", "--scrub", "--verify", "all"], vec!["snapshots"]] {
        machine.ok(args);
    }
    two.check(&two.to);

    let list = |args: &[&str]| machine.ok(args).of_type("snapshot").pop().unwrap();
    let first = list(&["snapshots", "--json", "-r", &two.from, "--password-file", &one]);
    let last = list(&["snapshots", "--json", "-r", &two.to, "--password-file", &file]);
    for field in ["paths", "host", "user", "tags", "items", "bytes"] {
        assert_eq!(first[field], last[field], "{field}");
    }
    assert_eq!(last["original_received"], first["received"]);
    assert_ne!(last["series"], first["series"]);
}

#[test]
fn the_latest_of_a_path_is_copied_though_a_newer_snapshot_is_of_another() {
    let two = Two::new();
    let [wanted, other] = ["wanted", "other"].map(|name| two.machine.path(name));
    for source in [&wanted, &other] {
        small_tree(source);
        two.at(&two.from, &["backup", &text(source)]);
    }
    let more = ["latest", "--path", &text(&wanted)].map(str::to_owned);
    let copied = two.machine.summary([two.copy_args(), more.to_vec()].concat());
    assert_eq!(copied["copied"], 1, "{copied}");
    let file = text(&two.machine.path("two"));
    let list = ["snapshots", "--json", "-r", &two.to, "--password-file", &file];
    let paths = two.machine.ok(list).of_type("snapshot");
    assert_eq!(paths.iter().map(|one| &one["paths"][0]).collect::<Vec<_>>(), [&text(&wanted)[..]]);
}

#[test]
fn what_was_copied_is_not_copied_again_and_the_next_snapshot_sends_what_is_new() {
    let two = Two::new();
    let source = two.machine.path("source");
    small_tree(&source);
    let source_text = text(&source);
    two.at(&two.from, &["backup", &source_text]);
    assert_eq!(two.copy()["copied"], 1);
    let again = two.copy();
    let nothing = ["copied", "data_added", "data_stored", "errors"];
    assert_eq!(nothing.map(|field| again[field].as_u64().unwrap()), [0; 4]);
    assert_eq!(again["already_copied"], 1);

    let before = disk_bytes(two.to.as_ref());
    fs::write(source.join("new"), Random::new(9).bytes(10_000)).unwrap();
    two.at(&two.from, &["backup", &source_text, "--tag", "later"]);
    let next = two.copy();
    assert_eq!((&next["copied"], &next["already_copied"]), (&1.into(), &1.into()));
    let stored = next["data_stored"].as_u64().unwrap();
    assert!((10_000..100_000).contains(&stored), "{next}");
    assert!(disk_bytes(two.to.as_ref()) - before < 200_000);
    two.check(&two.to);

    let mut words = two.copy_args();
    words.extend(["--tag", "later"].map(str::to_owned));
    let words = two.machine.ok(words).stdout;
    assert!(words.contains("copied before, as"), "{words}");
    assert!(words.contains("0 copied, 1 copied before"), "{words}");
}

#[test]
fn a_copy_that_is_killed_goes_on() {
    const BYTES: usize = 24 << 20;
    let two = Two::new();
    let machine = &two.machine;
    let source = machine.path("source");
    fs::create_dir(&source).unwrap();
    let mut random = Random::new(11);
    for name in ["a", "b", "c", "d"] {
        fs::write(source.join(name), random.bytes(BYTES / 4)).unwrap();
    }
    two.at(&two.from, &["backup", &text(&source)]);
    let data = machine.path("data");
    let server = Server::start(&data);
    machine.pair_with(&server);
    let one = text(&machine.path("one"));
    let copy = ["copy", "--from", &two.from, "--from-password-file", &one, "--json"];
    // So that it is still at it when the first of its puts has arrived.
    let slow = copy.iter().chain(&["--limit-upload", "3M", "--streams", "1"]);
    let mut running = Process::spawn(&mut machine.command(slow)).unwrap();
    let slack = 1 << 20;
    while disk_bytes(&data) <= slack {
        running.wait_for_line("{\"message_type\":\"status\"").unwrap();
    }
    running.kill().unwrap();
    assert!(machine.ok(["snapshots", "--json"]).of_type("snapshot").is_empty());

    let stored = disk_bytes(&data);
    let done = machine.ok(copy).summary();
    assert_eq!(done["copied"], 1);
    let sent = done["bytes_sent"].as_u64().unwrap();
    let all = BYTES as u64;
    assert!(sent <= all - (stored - slack) + all / 10, "{sent} sent, {stored} were there");
    assert_eq!(machine.summary(["check", "--scrub", "--verify", "all"])["snapshots"], 1);
    let target = machine.path("target");
    let from = format!("latest:{}", text(&source));
    machine.ok(["restore", &from, "--target", &text(&target)]);
    assert_eq!(compare_trees(&source, &target, &CompareOptions::default()), []);
}

#[test]
fn a_damaged_snapshot_is_20_and_the_others_are_copied() {
    let two = Two::new();
    let machine = &two.machine;
    let (bad, good) = (machine.path("bad"), machine.path("good"));
    for (folder, seed) in [(&bad, 1), (&good, 2)] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("file"), Random::new(seed).bytes(3_000_000)).unwrap();
    }
    two.at(&two.from, &["backup", &text(&bad)]);
    let largest = |files: Vec<std::path::PathBuf>| {
        files.into_iter().max_by_key(|file| fs::metadata(file).map_or(0, |found| found.len()))
    };
    let file = largest(files_below(two.from.as_ref())).unwrap();
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    two.at(&two.from, &["backup", &text(&good)]);
    // What came later lies behind it.
    let now = fs::read(&file).unwrap();
    bytes.extend_from_slice(&now[bytes.len()..]);
    fs::write(&file, bytes).unwrap();

    let args = two.copy_args();
    let said = machine.run(args.iter().map(String::as_str).chain(["--json"])).expect(20);
    let error = said.of_type("error").pop().unwrap();
    assert_eq!(error["code"], 20);
    assert!(error["message"].as_str().unwrap().contains("was not copied"), "{error}");
    let summary = said.summary();
    assert_eq!((&summary["copied"], &summary["errors"]), (&1.into(), &1.into()));
    two.check(&two.to);
    let target = machine.path("target");
    let from = format!("latest:{}", text(&good));
    two.at(&two.to, &["restore", &from, "--target", &text(&target)]);
    assert_eq!(compare_trees(&good, &target, &CompareOptions::default()), []);
}

#[test]
fn what_the_destination_has_lost_is_copied_again() {
    let two = Two::new();
    let source = two.machine.path("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("file"), Random::new(1).bytes(3_000_000)).unwrap();
    // What changed just now is read again by the next backup, and then copied again anyway.
    grow_old(&source);
    two.at(&two.from, &["backup", &text(&source)]);
    two.copy();
    let files = files_below(two.to.as_ref()).into_iter();
    let length = |file: &std::path::PathBuf| fs::metadata(file).map_or(0, |found| found.len());
    let largest = files.max_by_key(length).unwrap();
    let mut bytes = fs::read(&largest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&largest, bytes).unwrap();
    let two_file = text(&two.machine.path("two"));
    let repair = ["check", "--repair", "-r", &two.to, "--password-file", &two_file];
    two.machine.run(repair).expect(20);

    fs::write(source.join("new"), "new").unwrap();
    two.at(&two.from, &["backup", &text(&source)]);
    assert_eq!(two.copy()["copied"], 1);
    let target = two.machine.path("target");
    let from = format!("latest:{}", text(&source));
    two.at(&two.to, &["restore", &from, "--target", &text(&target)]);
    assert_eq!(compare_trees(&source, &target, &CompareOptions::default()), []);
}

#[test]
fn each_repository_has_its_own_password_and_both_must_be_different() {
    let two = Two::new();
    let machine = &two.machine;
    let copy = ["copy", "--from", &two.from, "-r", &two.to];
    let with = |from: (&str, &str)| {
        let mut command = machine.command(copy);
        command.env("HOLDALL_PASSWORD", "two").env(from.0, from.1).output().unwrap()
    };
    let one = text(&machine.path("one"));
    for from in [
        ("HOLDALL_FROM_PASSWORD", "one"),
        ("HOLDALL_FROM_PASSWORD_FILE", &one),
        ("HOLDALL_FROM_PASSWORD_COMMAND", "echo one"),
    ] {
        assert!(with(from).status.success(), "{from:?}");
    }
    let wrong = with(("HOLDALL_FROM_PASSWORD", "two"));
    assert_eq!(wrong.status.code(), Some(12));
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(said.contains("HOLDALL_FROM_PASSWORD"), "{said}");

    let same = ["copy", "--from", &two.from, "-r", &two.from, "--password-file", &one];
    let passwords = ["--from-password-file", &one];
    let said = machine.run(same.iter().chain(&passwords)).expect(2);
    assert!(said.stderr.contains("the same repository"), "{}", said.stderr);
}

#[test]
fn a_destination_that_was_rolled_back_is_told_and_gets_the_copies_all_the_same() {
    let two = Two::new();
    let machine = &two.machine;
    let source = machine.path("source");
    small_tree(&source);
    let older = text(&machine.path("older"));
    two.at(&two.from, &["backup", &text(&source)]);
    system(&["cp", "-a", &two.to, &older]);
    assert_eq!(two.copy()["copied"], 1);
    system(&["rm", "-r", &two.to]);
    system(&["mv", &older, &two.to]);

    let args = two.copy_args();
    let said = machine.run(args.iter().map(String::as_str).chain(["--json"])).expect(20);
    let told = said.of_type("error").pop().unwrap();
    assert!(told["message"].as_str().unwrap().contains("rolled back"), "{told}");
    assert_eq!(said.summary()["copied"], 1);
    assert_eq!(two.copy()["already_copied"], 1);
}

/// Runs a command of the system.
fn system(words: &[&str]) {
    let done = std::process::Command::new(words[0]).args(&words[1..]).status().unwrap();
    assert!(done.success(), "{words:?}");
}

#[test]
fn all_is_copied_though_nobody_reads_what_is_said() {
    let two = Two::new();
    let source = two.machine.path("source");
    small_tree(&source);
    for _ in 0..2 {
        two.at(&two.from, &["backup", &text(&source)]);
    }
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = two.machine.command(two.copy_args()).stdout(writer).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(two.copy()["already_copied"], 2);
}

#[test]
fn what_is_wrong_with_the_source_comes_with_what_to_do_about_that_one() {
    let two = Two::new();
    let machine = &two.machine;
    let nowhere = text(&machine.path("nowhere"));
    let hint = |from: &str, code: i32| {
        let mut args = two.copy_args();
        args[2] = from.to_owned();
        args.push("--json".to_owned());
        let error = machine.run(args).expect(code).of_type("error").pop().unwrap();
        assert!(error["message"].as_str().unwrap().contains(from), "{error}");
        error["hint"].as_str().unwrap().to_owned()
    };
    assert_eq!(hint(&nowhere, 10), "name another with --from");
    // It lost its snapshot, and has none to copy.
    let older = text(&machine.path("older"));
    small_tree(&machine.path("source"));
    system(&["cp", "-a", &two.from, &older]);
    two.at(&two.from, &["backup", &text(&machine.path("source"))]);
    system(&["rm", "-r", &two.from]);
    system(&["mv", &older, &two.from]);
    assert!(hint(&two.from, 20).contains(&format!("-r {}", two.from)));
}
