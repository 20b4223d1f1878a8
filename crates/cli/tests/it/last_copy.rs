//! What nothing in a repository opens without is there more than once: marker, configuration and wrapped keys lie in
//! two places of it, the machine keeps them, and the recovery kit alone makes them anew.

use std::fs;
use std::path::{Path, PathBuf};

use holdall_testkit::copy_folder;
use tempfile::TempDir;

use crate::house::{Machine, Outcome, Server, folder, small_tree, text};

const SET: &str = "wrappings/0000000000000001";
const SPARE: &str = "spare/0000000000000001";
const MARKER: &str = "holdall-repository";

/// A machine with a backup in a directory.
pub(crate) struct Place {
    pub(crate) machine: Machine,
    home: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self { machine: Machine::new(), home: folder() };
        small_tree(&place.path("tree"));
        let (repo, kit) = (place.path("repo"), place.path("kit"));
        place.machine.init(&["-r", text(&repo), "--recovery-kit", text(&kit)]);
        place.back_up(&place.machine).expect(0);
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path("repo").join(name)
    }

    pub(crate) fn back_up(&self, machine: &Machine) -> Outcome {
        self.run(machine, &["backup", text(&self.path("tree"))])
    }

    pub(crate) fn run(&self, machine: &Machine, args: &[&str]) -> Outcome {
        machine.run([args, &["-r", text(&self.path("repo"))]].concat())
    }

    /// Restores the newest snapshot and compares it.
    #[track_caller]
    pub(crate) fn restores(&self, machine: &Machine) {
        let target = self.path("restored");
        let _ = fs::remove_dir_all(&target);
        self.run(machine, &["restore", "latest", "--target", text(&target)]).expect(0);
        let restored = target.join(self.path("tree").strip_prefix("/").unwrap());
        for file in ["docs/letter.txt", "large.bin"] {
            let [before, after] = [self.path("tree"), restored.clone()].map(|dir| dir.join(file));
            assert!(fs::read(before).unwrap() == fs::read(after).unwrap(), "{file}");
        }
    }
}

fn flip(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(file, bytes).unwrap();
}

pub(crate) fn cut(file: &Path) {
    fs::write(file, "").unwrap();
}

pub(crate) fn remove(file: &Path) {
    fs::remove_file(file).unwrap();
}

type Harm = fn(&Path);

#[test]
fn whatever_becomes_of_one_copy_the_other_serves_and_the_next_writer_repairs_it() {
    let place = Place::new();
    for name in [MARKER, "config", SET, SPARE] {
        for harm in [flip, cut, remove] as [Harm; 3] {
            let sound = fs::read(place.file(name)).unwrap();
            harm(&place.file(name));
            let stranger = Machine::new();
            place.restores(&stranger);
            let kit = place.path("another-kit");
            place.run(&stranger, &["init", "--recovery-kit", text(&kit)]).expect(1);
            let was_told = place.run(&stranger, &["check"]);
            let is_new_spare = name == SPARE && !place.file(name).exists();
            was_told.expect(if is_new_spare { 0 } else { 20 });
            let repaired = place.run(&stranger, &["check", "--repair", "--json"]).expect(0);
            assert!(fs::read(place.file(name)).unwrap() == sound, "{name}");
            let repairs = repaired.of_type("repair");
            assert_eq!(repairs.len(), usize::from(!is_new_spare), "{name}: {repairs:?}");
            assert!(repairs.iter().all(|repair| repair["kind"] == "copy"));

            harm(&place.file(name));
            place.back_up(&place.machine).expect(0);
            assert!(fs::read(place.file(name)).unwrap() == sound, "{name}");
            place.run(&place.machine, &["check"]).expect(0);
        }
    }
}

#[test]
fn a_machine_gives_back_what_every_copy_of_is_lost() {
    let place = Place::new();
    for lost in [&["config", SPARE][..], &[SET, SPARE], &[MARKER, "config", SET, SPARE]] {
        for harm in [flip, remove] as [Harm; 2] {
            lost.iter().for_each(|name| harm(&place.file(name)));
            let stranger = place.run(&Machine::new(), &["snapshots"]).expect(20);
            assert!(stranger.stderr.contains("pair --kit"), "{}", stranger.stderr);
            place.restores(&place.machine);
            place.run(&Machine::new(), &["check"]).expect(0);
        }
    }
}

#[test]
fn no_machine_gives_back_keys_from_before_one_was_taken_away() {
    let place = Place::new();
    let other = Machine::new();
    let new = place.path("new-password");
    fs::write(&new, "another\n").unwrap();
    let change = ["key", "change", "--new-password-file", text(&new)];
    place.run(&other, &change).expect(0);
    for folder in ["wrappings", "spare"] {
        let newest = place.file(folder).join("0000000000000002");
        assert!(newest.exists());
        flip(&newest);
    }
    place.run(&place.machine, &["snapshots"]).expect(20);
    let reads = place.run(&other.with_password(Some("another")), &["snapshots"]);
    reads.expect(0);
}

#[test]
fn a_copy_of_the_repository_gives_back_what_is_lost() {
    let place = Place::new();
    let copy = place.path("copy");
    copy_folder(&place.path("repo"), &copy);
    ["config", SPARE].iter().for_each(|name| remove(&place.file(name)));
    let stranger = Machine::new();
    let mut command = stranger.command(["check", "--repair", "--from", text(&copy)]);
    command.args(["-r", text(&place.path("repo"))]).env("HOLDALL_FROM_PASSWORD", "correct horse");
    Outcome::of(&mut command).expect(0);
    place.run(&Machine::new(), &["check"]).expect(0);
}

#[test]
fn the_recovery_kit_alone_restores_everything() {
    let place = Place::new();
    place.run(&place.machine, &["key", "rotate"]).expect(0);
    place.back_up(&place.machine).expect(0);
    let kit = place.path("newest-kit");
    place.run(&place.machine, &["key", "add", "--recovery-kit", text(&kit)]).expect(0);
    for name in ["wrappings", "spare"] {
        fs::remove_dir_all(place.file(name)).unwrap();
    }
    [MARKER, "config"].iter().for_each(|name| remove(&place.file(name)));
    let stranger = Machine::new().with_password(None);
    place.run(&stranger, &["snapshots"]).expect(20);
    let paired = place.run(&stranger, &["pair", "--recovery-kit", text(&kit)]).expect(0);
    assert!(paired.stderr.contains("holdall key add"), "{}", paired.stderr);
    place.restores(&stranger);
    place.back_up(&stranger).expect(0);
    place.run(&stranger, &["check", "--verify", "all"]).expect(0);
}

#[test]
fn a_kit_of_another_repository_makes_nothing_anew() {
    let (place, other) = (Place::new(), Place::new());
    ["config", SPARE].iter().for_each(|name| remove(&place.file(name)));
    let stranger = Machine::new();
    let kit = other.path("kit");
    place.run(&stranger, &["pair", "--recovery-kit", text(&kit)]).expect(20);
    assert!(!place.file("config").exists());
    place.restores(&place.machine);
}

/// The records of a repository, by their names.
pub(crate) fn records(repo: &Path) -> Vec<PathBuf> {
    let mut records: Vec<_> =
        fs::read_dir(repo.join("records")).unwrap().map(|entry| entry.unwrap().path()).collect();
    records.sort();
    records
}

#[test]
fn a_damaged_record_comes_back_from_whoever_has_it() {
    let place = Place::new();
    place.back_up(&place.machine).expect(0);
    let (repo, copy) = (place.path("repo"), place.path("copy"));
    copy_folder(&repo, &copy);
    let [first, newest] = records(&repo).try_into().unwrap();
    let sound = [&first, &newest].map(|file| fs::read(file).unwrap());
    let is_sound = || [&first, &newest].map(|file| fs::read(file).unwrap()) == sound;

    // This machine's cache has both, and a backup keeps it from being overwritten.
    flip(&first);
    place.run(&place.machine, &["check"]).expect(20);
    place.back_up(&place.machine).expect(0);
    assert!(is_sound());
    [&first, &newest].iter().for_each(|file| flip(file));
    let repaired = place.run(&place.machine, &["check", "--repair", "--json"]).expect(0);
    assert_eq!(repaired.of_type("repair").len(), 2);
    assert!(is_sound());

    // Its state has the newest.
    let third = records(&repo).pop().unwrap();
    let before = fs::read(&third).unwrap();
    fs::remove_dir_all(place.machine.path("cache")).unwrap();
    flip(&third);
    place.run(&place.machine, &["check", "--repair"]).expect(0);
    assert!(fs::read(&third).unwrap() == before);

    // A stranger has neither, and a copy of the repository all that was there then.
    let stranger = Machine::new();
    flip(&first);
    place.run(&stranger, &["check", "--repair"]).expect(20);
    let mut command = stranger.command(["check", "--repair", "--from", text(&copy)]);
    command.args(["-r", text(&repo)]).env("HOLDALL_FROM_PASSWORD", "correct horse");
    Outcome::of(&mut command).expect(0);
    assert!(is_sound());
}

#[test]
fn a_record_that_is_gone_comes_back_unless_it_was_given_up() {
    let place = Place::new();
    place.back_up(&place.machine).expect(0);
    place.back_up(&place.machine).expect(0);
    let gone = records(&place.path("repo")).remove(1);
    let sound = fs::read(&gone).unwrap();
    remove(&gone);
    place.run(&Machine::new(), &["check"]).expect(20);
    let told = place.back_up(&place.machine).expect(0);
    assert!(told.stderr.contains("put back"), "{}", told.stderr);
    assert!(fs::read(&gone).unwrap() == sound);
    remove(&gone);
    let repaired = place.run(&place.machine, &["check", "--repair", "--json"]).expect(0);
    assert_eq!(repaired.of_type("repair").len(), 1);
    assert!(fs::read(&gone).unwrap() == sound);

    remove(&gone);
    let told = place.run(&Machine::new(), &["check"]).expect(20);
    let reason = format!("{}{}", told.stdout, told.stderr);
    let lost = reason.split_once(", which ").unwrap().0.rsplit(' ').next().unwrap();
    // The chain of its machine's records shows for ever that one is missing.
    place.run(&Machine::new(), &["forget", lost]).expect(20);
    place.back_up(&place.machine);
    place.run(&place.machine, &["check", "--repair"]).expect(20);
    assert!(!gone.exists());
}

#[test]
fn records_that_follow_each_other_come_back_together() {
    for harm in [remove, cut] as [Harm; 2] {
        let place = Place::new();
        (0..3).for_each(|_| drop(place.back_up(&place.machine).expect(0)));
        let all = records(&place.path("repo"));
        let sound: Vec<_> = all.iter().map(|file| fs::read(file).unwrap()).collect();
        let is_sound =
            || all.iter().map(|file| fs::read(file).unwrap_or_default()).eq(sound.clone());
        all[..3].iter().for_each(|file| harm(file));
        place.back_up(&place.machine).expect(0);
        assert!(is_sound());
        all[..3].iter().for_each(|file| harm(file));
        place.run(&place.machine, &["check", "--repair"]).expect(0);
        assert!(is_sound());
    }
}

#[test]
fn a_record_of_a_copy_that_went_on_by_itself_takes_no_place() {
    for harm in [flip, cut] as [Harm; 2] {
        let place = Place::new();
        let [repo, copy, good] = ["repo", "copy", "good"].map(|name| place.path(name));
        let tree = place.path("tree");
        copy_folder(&repo, &copy);
        let back_up = |to: &Path, content: &str| {
            fs::write(tree.join("new"), content).unwrap();
            place.machine.run(["backup", text(&tree), "-r", text(to)])
        };
        back_up(&copy, "of the copy").expect(0);
        copy_folder(&copy, &good);
        // It would be put back from there.
        fs::remove_dir_all(place.machine.path("cache")).unwrap();
        // It has not the snapshot of the copy, which this machine has the receipt of.
        back_up(&repo, "of the original").expect(20);
        let newest = |repo: &Path| records(repo).remove(1);
        assert_eq!(newest(&repo).file_name(), newest(&copy).file_name());
        harm(&newest(&copy));
        let rotten = fs::read(newest(&copy)).unwrap();
        back_up(&copy, "later");
        place.machine.run(["check", "--repair", "-r", text(&copy)]).expect(20);
        assert!(
            fs::read(newest(&copy)).unwrap() == rotten,
            "it stays for whoever has the right one"
        );
        let mut command = place.machine.command(["check", "--repair", "--from", text(&good)]);
        command.args(["-r", text(&copy)]).env("HOLDALL_FROM_PASSWORD", "correct horse");
        Outcome::of(&mut command);
        let is_back = fs::read(newest(&copy)).unwrap() == fs::read(newest(&good)).unwrap();
        assert_eq!(is_back, !rotten.is_empty());
    }
}

#[test]
fn a_snapshot_that_was_pruned_does_not_come_back_without_its_content() {
    let place = Place::new();
    let tree = place.path("tree");
    fs::write(tree.join("more"), holdall_testkit::Random::new(5).bytes(300_000)).unwrap();
    place.back_up(&place.machine).expect(0);
    fs::remove_file(tree.join("more")).unwrap();
    place.back_up(&place.machine).expect(0);
    let gone = records(&place.path("repo")).remove(1);
    let stranger = Machine::new();
    let list = place.run(&stranger, &["snapshots", "--json"]).expect(0).of_type("snapshot");
    let id = list[1]["id"].as_str().unwrap();
    place.run(&stranger, &["forget", id, "--prune"]).expect(0);
    fs::remove_dir_all(place.file("tombstones")).unwrap();
    place.back_up(&place.machine);
    place.run(&place.machine, &["check", "--repair"]).expect(20);
    assert!(!gone.exists());
}

#[test]
fn a_tombstone_of_nothing_that_can_not_be_read_is_told_once() {
    let place = Place::new();
    let stray = place.path("repo").join("tombstones/0000000000000099");
    fs::write(&stray, "garbage").unwrap();
    let told = place.run(&place.machine, &["check", "--json"]).expect(20);
    let damaged = told.of_type("summary")[0]["damaged"].as_array().unwrap().len();
    assert_eq!(damaged, 1, "{}", told.stdout);
}

#[test]
fn a_tombstone_that_can_not_be_read_keeps_nothing_else_from_being_repaired() {
    let place = Place::new();
    place.back_up(&place.machine).expect(0);
    let repo = place.path("repo");
    let [first, newest] = records(&repo).try_into().unwrap();
    let sound = fs::read(&newest).unwrap();
    fs::write(repo.join("tombstones").join(first.file_name().unwrap()), "garbage").unwrap();
    flip(&newest);
    let told = place.run(&place.machine, &["check", "--repair"]).expect(0);
    let told = format!("{}{}", told.stdout, told.stderr);
    assert!(told.contains("quarantine/tombstones"), "{told}");
    assert!(fs::read(&newest).unwrap() == sound);
    assert_eq!(place.run(&Machine::new(), &["snapshots", "--json"]).of_type("snapshot").len(), 2);
    place.run(&Machine::new(), &["check"]).expect(0);
}

#[test]
fn a_paired_machine_gives_a_server_back_what_it_lost() {
    let home = folder();
    let (data, tree) = (home.path().join("data"), home.path().join("tree"));
    small_tree(&tree);
    let server = Server::start(&data);
    let (machine, address) = (Machine::new(), server.address().to_owned());
    machine.pair_with(&server);
    machine.ok(["backup", "-q", text(&tree)]);
    drop(server);
    let repository = fs::read_dir(data.join("repositories")).unwrap().next().unwrap().unwrap();
    for name in ["config", SET, SPARE] {
        flip(&repository.path().join(name));
    }
    let record = records(&repository.path()).pop().unwrap();
    let sound = fs::read(&record).unwrap();
    flip(&record);
    let _server = Server::start_by(&mut Server::command_at(&address, &data), &data);
    let again = machine.run(["backup", text(&tree)]).expect(0);
    assert!(again.stderr.contains("given back"), "{}", again.stderr);
    assert!(fs::read(record).unwrap() == sound);
    machine.ok(["check", "-q"]);
}
