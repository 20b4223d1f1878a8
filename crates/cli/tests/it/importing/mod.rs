//! Repositories that a real restic made are imported: what is in them, and what is known of it.

mod ages;
mod crafted;
mod damage;
mod later;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use holdall_testkit::{
    CompareOptions, Difference, FidelitySizes, Field, Random, compare_trees, fidelity_tree,
    is_there,
};
use serde_json::Value;

use crate::house::{Machine, Outcome, disk_bytes, is_root, small_tree, text};
use crate::mounts::ManyFiles;

/// Times in the years 2400 and 2446, the last of ext4, which some files have: restic keeps them, and restores others.
const LATE: [&str; 2] = ["secs: 13569465600,", "secs: 15032385535,"];

/// A repository of restic, and a machine with an empty one of holdall.
struct Place {
    machine: Machine,
    from: PathBuf,
    to: PathBuf,
    source: PathBuf,
}

impl Place {
    /// Nothing without restic.
    fn new() -> Option<Self> {
        Self::of(Machine::new(), "2")
    }

    fn of(machine: Machine, version: &str) -> Option<Self> {
        let has = Command::new("restic").arg("version").output().is_ok();
        is_there("restic", has).then_some(())?;
        let [from, to, source] = ["restic", "repo", "source"].map(|name| machine.path(name));
        fs::write(machine.path("restic.txt"), "of restic\n").unwrap();
        machine.init(&["-r", text(&to)]);
        let place = Self { machine, from, to, source };
        place.restic(&["init", "--repository-version", version]).expect(0);
        Some(place)
    }

    /// What restic does with its repository.
    fn restic(&self, args: &[&str]) -> Outcome {
        let mut command = Command::new("restic");
        command.args(["--no-cache", "-q", "-r", text(&self.from)]).args(args);
        command.env("RESTIC_PASSWORD_FILE", self.machine.path("restic.txt"));
        Outcome::of(&mut command)
    }

    /// A snapshot of the source by restic, of a year.
    fn back_up(&self, year: u16, more: &[&str]) {
        let time = format!("{year}-02-03 04:05:06");
        let args = ["backup", text(&self.source), "--time", &time, "--host", "attic"];
        self.restic(&[&args[..], more].concat()).expect(0);
    }

    /// Ids of restic's snapshots, oldest first.
    fn restic_ids(&self) -> Vec<String> {
        let listed = self.restic(&["snapshots", "--json"]).expect(0);
        let listed: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
        listed.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    }

    fn import_args<'a>(&'a self, password: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
        let args = ["import", "restic", text(&self.from), "-r", text(&self.to), "--json"];
        [&args[..], &["--password-file", text(password)], more].concat()
    }

    fn import_with(&self, more: &[&str], code: i32) -> Outcome {
        let password = self.machine.path("restic.txt");
        self.machine.run(self.import_args(&password, more)).expect(code)
    }

    fn import(&self) -> Value {
        self.import_with(&[], 0).summary()
    }

    /// holdall's snapshots, oldest first.
    fn snapshots(&self) -> Vec<Value> {
        let listed = self.machine.ok(["snapshots", "--json", "-r", text(&self.to)]);
        let mut listed = listed.of_type("snapshot");
        listed.sort_by_key(|one| one["original_received"].as_str().unwrap().to_owned());
        listed
    }

    /// Restores a snapshot, and says where that is.
    fn restore(&self, id: &str) -> PathBuf {
        let target = self.machine.path(&format!("restored-{id}"));
        self.machine.ok(["restore", id, "--target", text(&target), "-r", text(&self.to)]);
        target
    }

    fn check(&self) {
        let args = ["check", "--scrub", "--verify", "all", "-r", text(&self.to)];
        assert_eq!(self.machine.summary(args)["damaged"], serde_json::json!([]));
    }

    /// Compares what restic restores of each of its snapshots with what holdall restores of the import.
    fn compare_all(&self) {
        let imported = self.snapshots();
        let ids = self.restic_ids();
        assert_eq!(imported.len(), ids.len());
        for (one, id) in imported.iter().zip(&ids) {
            let by_restic = self.machine.path(&format!("restic-{id}"));
            self.restic(&["restore", id, "--target", text(&by_restic)]).expect(0);
            let by_holdall = self.restore(one["id"].as_str().unwrap());
            // restic fills holes, and makes the target with other permissions.
            let (roots, filled_bytes) = (false, u64::MAX);
            let options = CompareOptions { roots, filled_bytes, ..CompareOptions::default() };
            let mut differences = compare_trees(&by_restic, &by_holdall, &options);
            differences.retain(|one| !is_lost_by_restic(one));
            assert!(differences.is_empty(), "{:#?}", &differences[..differences.len().min(20)]);
            fs::remove_dir_all(by_restic).unwrap();
            fs::remove_dir_all(by_holdall).unwrap();
        }
    }
}

/// Whether a difference is one that restic's restore alone makes: late times, and two names of a symbolic link.
fn is_lost_by_restic(one: &Difference) -> bool {
    match one.field {
        Field::Mtime => LATE.iter().any(|late| one.right.contains(late)),
        Field::HardLinks => one.path.ends_with(b"links/hard/second/symlink"),
        _ => false,
    }
}

fn everything_survives(version: &str) {
    if !is_root("restore owners and devices") {
        return;
    }
    let files = ManyFiles::new();
    let Some(place) =
        Place::of(files.machine("machine").with_password(Some("correct horse")), version)
    else {
        return;
    };
    fs::create_dir(&place.source).unwrap();
    // restic reads holes as zeros, and has no longer paths than a call takes.
    let sizes = FidelitySizes {
        deep_path_bytes: 2_000,
        hole_bytes: 8 << 20,
        large_sparse_bytes: 16 << 20,
        ..FidelitySizes::small()
    };
    fidelity_tree(&place.source, &sizes).expect("the tree can be made");
    place.back_up(2019, &["--tag", "red"]);
    fs::write(place.source.join("names/added"), "later").unwrap();
    fs::write(place.source.join("contents/grown"), Random::new(3).bytes(2_500_000)).unwrap();
    fs::remove_dir_all(place.source.join("huge")).unwrap();
    place.back_up(2021, &[]);
    place.back_up(2023, &["--exclude", "links", "--host", "cellar"]);
    let imported = place.import();
    assert_eq!((&imported["imported"], &imported["unreadable"]), (&3.into(), &0.into()));
    place.compare_all();
    place.check();
}

#[test]
fn what_restic_restores_holdall_restores_from_the_import() {
    everything_survives("2");
}

#[test]
fn what_restic_restores_holdall_restores_from_the_import_of_an_old_repository() {
    everything_survives("1");
}

#[test]
fn dates_hosts_paths_and_tags_are_kept_and_nothing_is_imported_twice() {
    let Some(place) = Place::new() else { return };
    small_tree(&place.source);
    place.back_up(2020, &["--tag", "red,blue"]);
    place.back_up(2022, &["--host", "cellar"]);
    let imported = place.import();
    assert_eq!((&imported["imported"], &imported["errors"]), (&2.into(), &0.into()), "{imported}");
    let fields =
        |one: &Value| ["host", "tags", "paths", "original_received"].map(|at| one[at].clone());
    let paths = serde_json::json!([text(&place.source)]);
    let both = place.snapshots();
    let ids = place.restic_ids();
    let expected = |host: &str, tags: &[&str], year: u16| {
        let time = format!("{year}-02-03T04:05:06Z");
        [host.into(), tags.into(), paths.clone(), time.into()]
    };
    let told: Vec<_> = both.iter().map(fields).collect();
    assert_eq!(told, [expected("attic", &["blue", "red"], 2020), expected("cellar", &[], 2022)]);
    assert_eq!(
        both.iter().map(|one| &one["copied_from"]).collect::<Vec<_>>(),
        ids.iter().collect::<Vec<_>>()
    );

    let (theirs, ours) = (disk_bytes(&place.from), disk_bytes(&place.to));
    let again = place.import();
    assert_eq!((&again["imported"], &again["already_imported"]), (&0.into(), &2.into()));
    assert_eq!((disk_bytes(&place.from), disk_bytes(&place.to)), (theirs, ours));
    // restic gives a snapshot another id when its tags change.
    place.restic(&["tag", "--add", "green", &ids[0]]).expect(0);
    assert_ne!(place.restic_ids(), ids);
    let tagged = place.import();
    assert_eq!((&tagged["imported"], &tagged["already_imported"]), (&0.into(), &2.into()));
}

#[test]
fn one_snapshot_is_imported_and_later_the_others() {
    let Some(place) = Place::new() else { return };
    small_tree(&place.source);
    (2020..2023).for_each(|year| place.back_up(year, &[]));
    let ids = place.restic_ids();
    let one = place.import_with(&["--snapshot", &ids[1][..12]], 0).summary();
    assert_eq!((&one["imported"], &one["already_imported"]), (&1.into(), &0.into()));
    let all = place.import();
    assert_eq!((&all["imported"], &all["already_imported"]), (&2.into(), &1.into()));
    let none = place.import_with(&["--snapshot", "none"], 1);
    assert!(none.stdout.contains("no snapshot none of restic"), "{none:?}");
}

#[test]
fn a_password_is_that_of_restic_unless_another_place_is_named_for_that() {
    let Some(mut place) = Place::new() else { return };
    small_tree(&place.source);
    place.back_up(2020, &[]);
    let [theirs, ours] = ["restic.txt", "ours.txt"].map(|name| place.machine.path(name));
    fs::write(&ours, "correct horse").unwrap();
    let wrong = place.machine.run(place.import_args(&ours, &[])).expect(12);
    assert!(wrong.stdout.contains("wrong password"), "{wrong:?}");
    place.machine = place.machine.with_password(None);
    let both = ["--from-password-file", text(&theirs)];
    place.machine.ok(place.import_args(&ours, &both));
    let mut by_variable = place.machine.command(place.import_args(&ours, &[]));
    Outcome::of(by_variable.env("HOLDALL_FROM_PASSWORD_FILE", &theirs)).expect(0);
    let mut own_by_variable = place.machine.command(place.import_args(&theirs, &[]));
    Outcome::of(own_by_variable.env("HOLDALL_PASSWORD_FILE", &ours)).expect(0);
}

#[test]
fn what_is_no_repository_of_restic_is_said_before_a_password_is_asked_for() {
    let machine = Machine::new();
    let nowhere = machine.path("nowhere");
    let told = machine.run(["import", "restic", text(&nowhere), "-r", text(&nowhere)]).expect(10);
    assert!(told.stderr.contains("no repository of restic is there"), "{told:?}");
}
