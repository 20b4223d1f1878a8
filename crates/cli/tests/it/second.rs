//! What a repository lost comes back from a second one that has the same snapshots.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::house::{Machine, Outcome, Server, files_below, text};
use crate::repair::{Kept, flip, noise};

/// A repository with two snapshots, and a second one in another directory.
struct Twice {
    kept: Kept,
    second: PathBuf,
    password: PathBuf,
}

impl Twice {
    fn new() -> Self {
        let kept = Kept::new();
        let [second, password] = ["second", "password"].map(|name| kept.machine.path(name));
        fs::write(&password, "correct horse").unwrap();
        // With the rest, two packs and what is not in one yet.
        fs::write(kept.source.join("larger"), noise(99, 50_000_000)).unwrap();
        kept.backup();
        fs::write(kept.source.join("folder-3/small-7"), noise(77, 30_000)).unwrap();
        kept.backup();
        Self { kept, second, password }
    }

    /// With a second repository that has keys of its own and the same snapshots.
    fn copied() -> Self {
        let twice = Self::new();
        twice.init_second();
        let (from, key) = (text(&twice.kept.repo), text(&twice.password));
        let from = ["copy", "--from", from, "--from-password-file", key];
        twice.kept.machine.ok([&from[..], &["-r", text(&twice.second)]].concat());
        twice
    }

    fn init_second(&self) {
        let kit = self.kept.machine.path("second-kit");
        let machine = &self.kept.machine;
        machine.init(&["-r", text(&self.second), "--recovery-kit", text(&kit)]);
    }

    fn with_second(&self, args: &[&str]) -> Outcome {
        let from = ["--from", text(&self.second), "--from-password-file", text(&self.password)];
        self.kept.machine.run(self.kept.args(&[args, &from, &["--json"]].concat()))
    }

    /// Damages what there is of each kind: a pack with a changed bit, one that is gone, and the tail
    /// that has the nodes; and the caches are lost.
    fn damage(&self) {
        let packs = files_below(&self.kept.repo.join("packs"));
        flip(&packs[0], 5000);
        fs::remove_file(&packs[1]).unwrap();
        let is_nodes =
            |path: &&PathBuf| text(path).contains("nodes.") && text(path).ends_with("payload");
        let tails = files_below(&self.kept.repo.join("tails"));
        flip(tails.iter().find(is_nodes).unwrap(), 3000);
        fs::remove_dir_all(self.kept.machine.path("cache")).unwrap();
    }

    /// Everything is there, also after a prune, and no backup has to send anything again.
    #[track_caller]
    fn check_whole(&self) {
        let machine = &self.kept.machine;
        for _ in 0..2 {
            let checked = machine.summary(self.kept.args(&["check", "--scrub", "--verify", "all"]));
            assert_eq!(checked["damaged"], serde_json::json!([]));
            assert_eq!(checked["snapshots"], 2);
            machine.ok(self.kept.args(&["prune"]));
        }
        assert!(self.kept.restores());
        let after = self.kept.backup();
        assert_eq!(after["objects_sent_again"], 0);
    }
}

/// All files and their content, but for what says who has the repository open.
fn files(folder: &Path) -> BTreeMap<PathBuf, blake3::Hash> {
    let hash = |path: &PathBuf| blake3::hash(&fs::read(path).unwrap());
    files_below(folder).into_iter().map(|path| (path.clone(), hash(&path))).collect()
}

#[test]
fn what_is_lost_comes_back_from_a_repository_that_it_was_copied_to() {
    let twice = Twice::copied();
    twice.damage();
    let before = files(&twice.kept.repo);
    let would = twice.with_second(&["check", "--repair", "-n"]).expect(20);
    assert!(files(&twice.kept.repo) == before, "a dry run changed something");
    let fetched = |outcome: &Outcome| {
        let mut repairs = outcome.of_type("repair");
        repairs.retain(|repair| repair["kind"] == "fetched");
        repairs.iter().map(|repair| repair["objects"].as_u64().unwrap()).sum::<u64>()
    };
    assert!(fetched(&would) > 20, "{}", would.stdout);
    assert_eq!(would.summary()["repaired"], 0);

    let second = files(&twice.second);
    let done = twice.with_second(&["check", "--repair"]).expect(0);
    assert_eq!(fetched(&done), fetched(&would));
    assert_eq!(done.summary()["damaged"], serde_json::json!([]));
    assert!(files(&twice.second) == second, "the second repository was changed");
    twice.check_whole();
    assert_eq!(fetched(&twice.with_second(&["check", "--repair"]).expect(0)), 0);
}

#[test]
fn what_is_lost_comes_back_from_a_copy_of_the_directory() {
    let twice = Twice::new();
    let copied = Command::new("cp").arg("-a").arg(&twice.kept.repo).arg(&twice.second).status();
    assert!(copied.unwrap().success());
    twice.damage();
    twice.with_second(&["check", "--repair"]).expect(0);
    twice.check_whole();
}

#[test]
fn a_second_repository_without_the_snapshots_changes_nothing_and_is_told() {
    let twice = Twice::new();
    twice.init_second();
    // The same folder, and no copy: it is not taken for one.
    let backup = ["backup", "-r", text(&twice.second), text(&twice.kept.source)];
    twice.kept.machine.ok(backup);
    twice.damage();
    twice.kept.machine.run(twice.kept.args(&["check", "--repair"])).expect(20);
    let before = files(&twice.kept.repo.join("packs"));
    let told = twice.with_second(&["check", "--repair"]).expect(20);
    assert!(files(&twice.kept.repo.join("packs")) == before);
    let damaged = told.summary()["damaged"].to_string();
    assert!(damaged.contains("the second repository has no copy of this snapshot"), "{damaged}");
    assert_eq!(told.of_type("repair").len(), 0);
}

#[test]
fn what_a_server_lost_is_sent_again_from_a_directory() {
    let machine = Machine::new().with_password(None);
    let [data, source, second, password] =
        ["data", "source", "second", "password"].map(|name| machine.path(name));
    let server = Server::start(&data);
    machine.pair_with(&server);
    fs::create_dir(&source).unwrap();
    (0..40u8).for_each(|file| {
        fs::write(source.join(format!("file-{file}")), noise(file, 300_000)).unwrap();
    });
    machine.ok(["backup", text(&source)]);
    fs::write(&password, "correct horse").unwrap();
    let kit = machine.path("second-kit");
    let there = ["-r", text(&second), "--password-file", text(&password)];
    machine.init(&[&["--recovery-kit", text(&kit)], &there[..]].concat());
    let address = format!("https://{}", server.address());
    machine.ok([&["copy", "--from", &address], &there[..]].concat());

    let repository = fs::read_dir(data.join("repositories")).unwrap().next().unwrap().unwrap();
    let is_content =
        |path: &&PathBuf| text(path).contains("chunks.") && text(path).ends_with("payload");
    let tails = files_below(&repository.path().join("tails"));
    flip(tails.iter().find(is_content).unwrap(), 100_000);
    machine.run(["check", "--verify", "all"]).expect(20);
    machine.administer(&data, &["scrub", "--repair"]).expect(20);
    let from = ["--from", text(&second), "--from-password-file", text(&password)];
    let would = machine.run([&["check", "--repair", "-n"], &from[..]].concat()).expect(20);
    let said = would.stdout + &would.stderr;
    assert!(said.contains("administrator repairs"), "{said}");
    assert!(said.contains("would be fetched from"), "{said}");
    let done = machine.ok([&["check", "--repair", "--json"], &from[..]].concat());
    assert_eq!(done.of_type("repair")[0]["kind"], "fetched");
    machine.ok(["check", "--scrub", "--verify", "all"]);
}

#[test]
fn the_second_repository_must_be_another_and_is_named_with_repair_only() {
    let twice = Twice::new();
    let same = twice.kept.args(&["check", "--repair", "--from", text(&twice.kept.repo)]);
    let told = twice.kept.machine.run(same).expect(2);
    assert!(told.stderr.contains("the same repository"), "{}", told.stderr);
    let told = twice.with_second(&["check"]).expect(2);
    assert!(told.stderr.contains("--repair"), "{}", told.stderr);
    let none = twice.with_second(&["check", "--repair", "-n"]).expect(10);
    let error = none.of_type("error").pop().unwrap();
    assert!(error["message"].as_str().unwrap().contains(text(&twice.second)), "{error}");
}
