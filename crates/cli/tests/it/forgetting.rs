//! Forgetting snapshots and pruning what only they held, in a directory; a server lets no machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdall_crypto::SigningKey;
use holdall_format::{RecordHash, TombstoneReason};
use holdall_repository::Store;
use holdall_sys::SystemClock;
use holdall_testkit::Random;
use serde_json::Value;

use crate::house::{Machine, Outcome, Server, files_below, text};

/// A machine with a repository in a directory, and snapshots of a folder that changes.
struct Kept {
    machine: Machine,
    repo: String,
}

impl Kept {
    /// So many snapshots, each of a file of its own and of one that all have.
    fn with_snapshots(count: usize) -> Self {
        let machine = Machine::new();
        let repo = machine.path("repo").to_str().unwrap().to_owned();
        machine.init(&["-r", &repo, "--recovery-kit", machine.path("kit").to_str().unwrap()]);
        let kept = Self { machine, repo };
        let source = kept.machine.path("source");
        fs::create_dir(&source).unwrap();
        fs::write(source.join("common"), noise(0)).unwrap();
        for number in 1..=count {
            fs::write(source.join("own"), noise(number as u8)).unwrap();
            let tag = format!("number-{number}");
            kept.ok(&["backup", source.to_str().unwrap(), "--tag", &tag]);
        }
        kept
    }

    fn ok(&self, args: &[&str]) -> Outcome {
        self.machine.ok([args, &["-r", &self.repo]].concat())
    }

    fn snapshots(&self) -> Vec<Value> {
        self.ok(&["snapshots", "--json"]).of_type("snapshot")
    }

    fn stored_bytes(&self) -> u64 {
        self.ok(&["stats", "--json"]).summary()["stored_bytes"].as_u64().unwrap()
    }
}

/// A megabyte that does not compress.
fn noise(seed: u8) -> Vec<u8> {
    Random::new(seed.into()).bytes(1 << 20)
}

#[test]
fn rules_forget_and_prune_gives_back_what_nothing_needs() {
    let kept = Kept::with_snapshots(5);
    let before = kept.snapshots();
    let args = ["forget", "--keep-last", "1", "--keep-tag", "number-2", "--json"];
    let would = kept.ok(&[&args[..], &["--dry-run"]].concat());
    assert_eq!(kept.snapshots(), before, "nothing was changed");
    let done = kept.ok(&args);
    for told in [would, done] {
        let gone: Vec<_> =
            told.of_type("snapshot").iter().map(|one| one["forgotten"] == true).collect();
        assert_eq!(gone, [true, false, true, true, false]);
        assert_eq!(told.of_type("snapshot")[1]["reasons"], serde_json::json!(["tag"]));
        assert_eq!(told.summary()["snapshots_forgotten"], 3);
        assert_eq!(told.summary()["snapshots_kept"], 2);
    }
    assert_eq!(kept.snapshots(), [before[1].clone(), before[4].clone()]);

    let stored = kept.stored_bytes();
    let would = kept.ok(&["prune", "--dry-run", "--json"]).summary();
    assert_eq!(kept.stored_bytes(), stored);
    let done = kept.ok(&["prune", "--json"]).summary();
    let after = kept.stored_bytes();
    assert_eq!(done["stored_after_bytes"], after);
    assert!(stored - after > 3 << 20, "{stored} {after}");
    let foreseen = would["stored_after_bytes"].as_u64().unwrap();
    assert!(foreseen.abs_diff(after) < 100_000, "{foreseen} {after}");
    kept.ok(&["check", "--verify", "all"]);
    let out = kept.machine.path("out");
    let second = before[1]["id"].as_str().unwrap();
    let path = format!("{second}:{}", kept.machine.path("source").display());
    kept.ok(&["restore", &path, "--target", out.to_str().unwrap()]);
    assert_eq!(fs::read(out.join("own")).unwrap(), noise(2));
    assert_eq!(fs::read(out.join("common")).unwrap(), noise(0));
}

#[test]
fn the_newest_may_be_forgotten_by_name_and_is_not_taken_for_a_loss() {
    let kept = Kept::with_snapshots(2);
    kept.ok(&["tag", "latest", "--add", "named"]);
    kept.ok(&["forget", "latest", "--prune"]);
    assert_eq!(kept.snapshots().len(), 1);
    kept.ok(&["check"]);
    // The chain of records goes on from what was forgotten.
    kept.ok(&["backup", kept.machine.path("source").to_str().unwrap()]);
    let sequences: Vec<_> = kept.snapshots().iter().map(|one| one["sequence"].clone()).collect();
    assert_eq!(sequences, [1, 4]);
    // Hidden without a tombstone, it is a loss.
    let tombstones = kept.machine.path("repo/tombstones");
    kept.ok(&["forget", "latest"]);
    for file in fs::read_dir(tombstones).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    let hidden = kept.machine.run(["snapshots", "-r", &kept.repo]);
    assert_eq!(hidden.code, Some(20), "{}", hidden.stderr);
}

#[test]
fn latest_is_the_newest_that_the_filter_takes_and_an_id_that_it_does_not_take_is_refused() {
    let kept = Kept::with_snapshots(4);
    let before = kept.snapshots();
    let id = |number: usize| before[number - 1]["id"].as_str().unwrap().to_owned();
    let refused = |args: &[&str], code, why: &str| {
        let outcome = kept.machine.run([args, &["-r", &kept.repo]].concat()).expect(code);
        assert!(outcome.stderr.contains(why), "{args:?}: {}", outcome.stderr);
        assert_eq!(kept.snapshots(), before, "{args:?}");
    };
    refused(&["forget", "latest", "--tag", "nosuch"], 1, "take none of this machine's");
    refused(&["forget", "latest", "--path", "/elsewhere"], 1, "take none of this machine's");
    refused(&["forget", "latest", "--machine", "deadbeef", "-n"], 1, "take none");
    refused(&["forget", &id(4), "--machine", "deadbeef"], 2, "is none of those");
    refused(&["forget", &id(1), &id(4), "--tag", "number-1"], 2, "is none of those");

    let found = ["find", "common", "--snapshot", "latest", "--tag", "number-2", "--json"];
    let found = kept.ok(&found).of_type("match");
    assert_eq!(found.iter().map(|one| &one["snapshot"]).collect::<Vec<_>>(), [id(2).as_str()]);

    kept.ok(&["forget", "latest", "--tag", "number-2"]);
    let host = before[0]["host"].as_str().unwrap();
    kept.ok(&["forget", "latest", &id(1)[..12], "--machine", host]);
    assert_eq!(kept.snapshots(), [before[2].clone()]);
}

#[test]
fn a_pinned_snapshot_is_kept_whatever_the_rules_say() {
    let kept = Kept::with_snapshots(3);
    let first = kept.snapshots()[0]["id"].as_str().unwrap().to_owned();
    kept.ok(&["tag", &first, "--pin"]);
    kept.ok(&["forget", "--keep-last", "1", "--prune"]);
    let left = kept.snapshots();
    assert_eq!(left.len(), 2);
    assert_eq!(
        (left[0]["id"].as_str(), &left[0]["pinned"]),
        (Some(&first[..]), &Value::Bool(true))
    );
}

/// The record may be the pin, and what it pins may be the record that is damaged.
#[test]
fn a_pin_is_not_lost_with_a_record_that_can_not_be_read() {
    for which in [0, 3] {
        let kept = Kept::with_snapshots(3);
        let first = kept.snapshots()[0]["id"].as_str().unwrap().to_owned();
        kept.ok(&["tag", &first, "--pin"]);
        let records = fs::read_dir(kept.machine.path("repo/records")).unwrap();
        let mut records: Vec<_> = records.map(|file| file.unwrap().path()).collect();
        records.sort();
        let whole = fs::read(&records[which]).unwrap();
        fs::write(&records[which], b"rot").unwrap();
        for args in [&["forget", "--keep-last", "1"][..], &["prune"]] {
            kept.machine.run([args, &["-r", &kept.repo]].concat()).expect(20);
        }
        fs::write(&records[which], whole).unwrap();
        let left = kept.snapshots();
        assert_eq!((left.len(), &left[0]["pinned"]), (3, &Value::Bool(true)), "{which}");
    }
}

#[test]
fn while_a_record_is_lost_nothing_goes_until_it_is_given_up() {
    let kept = Kept::with_snapshots(3);
    let second = kept.snapshots()[1]["id"].as_str().unwrap().to_owned();
    let mut records = files_below(&kept.machine.path("repo/records"));
    records.sort();
    // As a program may leave it that keeps folders the same.
    fs::rename(&records[1], records[1].with_extension("bak")).unwrap();
    let run = |args: &[&str]| kept.machine.run([args, &["-r", &kept.repo]].concat());
    run(&["forget", "--keep-last", "1"]).expect(20);
    let refused = run(&["prune"]).expect(20);
    assert!(refused.stderr.contains(&second), "{refused:?}");
    assert!(run(&["check"]).expect(20).stdout.contains(&second));
    assert_eq!(files_below(&kept.machine.path("repo/records")).len(), 3);
    let unknown = run(&["forget", &"0".repeat(64)]).expect(1);
    assert!(unknown.stderr.contains("there is no snapshot"), "{unknown:?}");
    let given_up = run(&["forget", &second]);
    assert!(given_up.stderr.contains("is given up"), "{given_up:?}");
    kept.ok(&["prune"]);
}

#[test]
fn rules_let_nothing_go_while_something_of_a_snapshot_is_lost() {
    let kept = Kept::with_snapshots(3);
    let tails = files_below(&kept.machine.path("repo/tails"));
    let is_of_chunks = |path: &&PathBuf| path.to_str().unwrap().contains("chunks.");
    tails.iter().filter(is_of_chunks).for_each(|path| fs::remove_file(path).unwrap());
    let refused = kept.machine.run(["forget", "--keep-last", "1", "-r", &kept.repo]).expect(20);
    assert!(refused.stderr.contains("missing"), "{refused:?}");
    assert_eq!(kept.snapshots().len(), 3);
}

#[test]
fn what_says_nothing_or_too_much_is_wrong_usage() {
    let kept = Kept::with_snapshots(1);
    for args in [
        &["forget"][..],
        &["forget", "latest", "--keep-last", "1"],
        &["forget", "--keep-last", "x"],
    ] {
        let refused = kept.machine.run([args, &["-r", &kept.repo]].concat());
        assert_eq!(refused.code, Some(2), "{args:?}: {}", refused.stderr);
    }
    let unknown = kept.machine.run(["forget", "ffffff", "-r", &kept.repo]);
    assert_eq!(unknown.code, Some(1), "{}", unknown.stderr);
    assert_eq!(kept.snapshots().len(), 1);
}

#[test]
fn nothing_is_deleted_while_something_is_damaged() {
    let kept = Kept::with_snapshots(3);
    let first = kept.snapshots()[0]["id"].as_str().unwrap().to_owned();
    kept.ok(&["forget", &first]);
    let records = fs::read_dir(kept.machine.path("repo/records")).unwrap();
    let record = records.map(|file| file.unwrap().path()).max().unwrap();
    fs::write(&record, b"rot").unwrap();
    let before = kept.stored_bytes_of_packs();
    let refused = kept.machine.run(["prune", "-r", &kept.repo]);
    assert_eq!(refused.code, Some(20), "{}", refused.stderr);
    assert!(refused.stderr.contains("nothing is deleted"), "{}", refused.stderr);
    assert_eq!(kept.stored_bytes_of_packs(), before);
}

#[test]
fn nothing_is_deleted_while_the_snapshot_is_gone_that_this_machine_has_the_receipt_of() {
    let kept = Kept::with_snapshots(3);
    kept.ok(&["forget", "latest"]);
    kept.ok(&["prune", "-n"]);
    let source = kept.machine.path("source");
    let backup = ["backup", source.to_str().unwrap(), "-r", &kept.repo];
    fs::write(source.join("own"), noise(9)).unwrap();
    kept.machine.ok(backup);
    let newest = kept.snapshots().pop().unwrap()["id"].as_str().unwrap().to_owned();
    let record = files_below(&kept.machine.path("repo/records")).into_iter().max().unwrap();
    fs::rename(record, kept.machine.path("moved away")).unwrap();
    let before = kept.stored_bytes_of_packs();
    for args in
        [&["prune"][..], &["prune", "-n"], &["compact"], &["compact", "-n"], &["forget", "latest"]]
    {
        let refused = kept.machine.run([args, &["-r", &kept.repo]].concat()).expect(20).stderr;
        let is_told = refused.contains(&newest) && refused.contains("`holdall backup` goes on");
        assert!(is_told, "{args:?}: {refused}");
        assert_eq!(kept.stored_bytes_of_packs(), before, "{args:?}");
    }
    // With the next backup it is known to be lost, and deleting goes on.
    kept.machine.run(backup).expect(20);
    kept.ok(&["prune"]);
}

impl Kept {
    fn stored_bytes_of_packs(&self) -> u64 {
        let tails = fs::read_dir(self.machine.path("repo/tails")).unwrap();
        tails.map(|file| file.unwrap().metadata().unwrap().len()).sum()
    }
}

#[test]
fn a_server_lets_no_machine_delete() {
    let machine = Machine::new().with_password(None);
    let server = Server::start(&machine.path("data"));
    machine.pair_with(&server);
    let source = machine.path("source");
    fs::create_dir(&source).unwrap();
    machine.ok(["backup", source.to_str().unwrap()]);
    for args in [&["forget", "latest"][..], &["prune"]] {
        let refused = machine.run(args.iter().copied());
        assert_eq!(refused.code, Some(13), "{}", refused.stderr);
        assert!(refused.stderr.contains("holdall admin"), "{}", refused.stderr);
    }
    assert_eq!(machine.ok(["snapshots", "--json"]).of_type("snapshot").len(), 1);
}

pub(crate) fn forge_tombstone(data: &Path, snapshot: &str, reason: TombstoneReason) {
    let seed = fs::read(data.join("identity.key")).unwrap().try_into().unwrap();
    // A server's identity in the hands of a forger.
    let forger = Arc::new(SigningKey::from_seed(&seed));
    let repository = fs::read_dir(data.join("repositories")).unwrap().next().unwrap().unwrap();
    let cache = data.join("cache").join(repository.file_name());
    let store = Store::open(&repository.path(), &cache, forger, Arc::new(SystemClock)).unwrap();
    let snapshot: RecordHash = snapshot.parse().unwrap();
    store.forget(&[snapshot], reason).unwrap();
}

/// Rules keep the newest of every series, so a server that says that they let it go hides it.
#[test]
fn a_server_that_says_that_rules_let_the_newest_go_is_not_believed() {
    for (reason, code) in [(TombstoneReason::Retention, 20), (TombstoneReason::Request, 0)] {
        let machine = Machine::new().with_password(None);
        let data = machine.path("data");
        let mut server = Server::start(&data);
        machine.pair_with(&server);
        let source = machine.path("source");
        fs::create_dir(&source).unwrap();
        machine.ok(["backup", source.to_str().unwrap()]);
        let receipt = files_below(&machine.path("config/state/receipts")).pop().unwrap();
        let first = fs::read(&receipt).unwrap();
        machine.ok(["backup", source.to_str().unwrap()]);
        let newest_receipt = fs::read(&receipt).unwrap();
        let listed = machine.ok(["snapshots", "--json"]).of_type("snapshot");
        let [older, newest] = [0, 1].map(|at: usize| listed[at]["id"].as_str().unwrap());
        let address = server.address().to_owned();
        server.process().kill().unwrap();
        forge_tombstone(&data, older, TombstoneReason::Retention);
        let server = Server::start_by(&mut Server::command_at(&address, &data), &data);
        assert_eq!(machine.ok(["snapshots", "--json"]).of_type("snapshot").len(), 1);
        // Whoever remembers only the older one sees that a newer one follows.
        fs::write(&receipt, first).unwrap();
        machine.run(["prune"]).expect(13);
        fs::write(&receipt, newest_receipt).unwrap();
        drop(server);
        forge_tombstone(&data, newest, reason);
        let _server = Server::start_by(&mut Server::command_at(&address, &data), &data);
        let told = machine.run(["snapshots"]);
        assert_eq!(told.code, Some(code), "{}", told.stderr);
        assert_eq!(told.stderr.contains("none lets the newest"), code == 20, "{}", told.stderr);
        machine.run(["prune"]).expect(if code == 20 { 20 } else { 13 });
    }
}

#[test]
fn forgetting_the_only_snapshot_says_that_none_is_left() {
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    fs::create_dir(&source).unwrap();
    machine.init(&["-r", text(&repo)]);
    let none_is_left = "no snapshot is left";
    let run = |args: &[&str]| machine.ok([args, &["-r", text(&repo)]].concat()).stderr;
    run(&["backup", text(&source)]);
    run(&["backup", text(&source)]);
    assert!(!run(&["forget", "latest"]).contains(none_is_left));
    assert!(run(&["forget", "latest", "-n"]).contains(none_is_left));
    assert!(run(&["forget", "latest"]).contains(none_is_left));
}
