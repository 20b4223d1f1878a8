//! A copy of a repository that went on by itself, and is named to repair the original from: what it has shows nothing of what
//! the original had.

use std::fs;
use std::path::{Path, PathBuf};

use holdall_testkit::copy_folder;
use tempfile::TempDir;

use crate::house::{Machine, Outcome, folder, text};
use crate::last_copy::{Place, cut, records, remove};

/// A machine with a backup, and a copy of its repository to which a copy of that machine writes.
struct Apart {
    place: Place,
    clone: Machine,
    _home: TempDir,
}

impl Apart {
    fn new() -> Self {
        let (place, home) = (Place::new(), folder());
        copy_folder(&place.path("repo"), &place.path("copy"));
        let clone = home.path().join("machine");
        copy_folder(&place.machine.path(""), &clone);
        Self { place, clone: Machine::in_folder(clone), _home: home }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path(name)
    }

    /// Has original and copy go on, each by itself. Gives the newest record of the original, and what is in it.
    fn go_on(&self, args: &[&str]) -> (PathBuf, Vec<u8>) {
        let [own, other] =
            [(&self.place.machine, "repo"), (&self.clone, "copy")].map(|(who, repo)| {
                who.run([args, &["-r", text(&self.path(repo))]].concat()).expect(0);
                records(&self.path(repo)).pop().unwrap()
            });
        assert_eq!(own.file_name(), other.file_name());
        let sound = fs::read(&own).unwrap();
        assert!(fs::read(&other).unwrap() != sound);
        (own, sound)
    }

    /// What a machine that has seen nothing repairs, with the copy.
    fn repair(&self, who: &Machine, more: &[&str]) -> Outcome {
        let mut command = who.command(["check", "--repair", "--from", text(&self.path("copy"))]);
        command.args(["-r", text(&self.path("repo"))]).args(more);
        Outcome::of(command.env("HOLDALL_FROM_PASSWORD", "correct horse"))
    }
}

fn name(file: &Path) -> &str {
    file.file_name().unwrap().to_str().unwrap()
}

fn words(outcome: &Outcome) -> String {
    format!("{}{}", outcome.stdout, outcome.stderr)
}

#[test]
fn what_the_copy_has_takes_no_place_of_which_nothing_is_left() {
    for harm in [cut, remove] as [fn(&Path); 2] {
        for is_backup in [false, true] {
            let apart = Apart::new();
            let tree = apart.path("tree");
            let args = if is_backup { ["backup", text(&tree)] } else { ["tag", "latest"] };
            let more: &[&str] = if is_backup { &[] } else { &["--pin"] };
            let (newest, sound) = apart.go_on(&[&args, more].concat());
            harm(&newest);
            let stranger = Machine::new();
            let told = words(&apart.repair(&stranger, &[]).expect(20));
            assert!(told.contains(&format!("--record {} --from", name(&newest))), "{told}");
            assert!(fs::read(&newest).unwrap_or_default().is_empty());
            apart.place.run(&apart.place.machine, &["check", "--repair"]).expect(0);
            assert!(fs::read(&newest).unwrap() == sound);
            apart.repair(&stranger, &[]).expect(0);
        }
    }
}

/// What this computer knows goes first, and then nothing of the copy has a place any more.
#[test]
fn what_this_computer_has_seen_goes_before_what_the_copy_has() {
    let apart = Apart::new();
    let (newest, sound) = apart.go_on(&["tag", "latest", "--pin"]);
    cut(&newest);
    apart.repair(&apart.place.machine, &[]).expect(0);
    assert!(fs::read(&newest).unwrap() == sound);
}

#[test]
fn a_record_of_the_copy_that_the_original_went_on_from_comes_back() {
    for harm in [cut, remove] as [fn(&Path); 2] {
        let place = Place::new();
        place.back_up(&place.machine).expect(0);
        let newest = records(&place.path("repo")).pop().unwrap();
        let sound = fs::read(&newest).unwrap();
        copy_folder(&place.path("repo"), &place.path("copy"));
        // Another machine's pin is of it.
        place.run(&Machine::new(), &["tag", "latest", "--pin"]).expect(0);
        harm(&newest);
        let apart = Apart { place, clone: Machine::new(), _home: folder() };
        apart.repair(&Machine::new(), &[]).expect(0);
        assert!(fs::read(&newest).unwrap() == sound);
    }
}

#[test]
fn the_owner_s_word_puts_nothing_in_that_what_follows_contradicts() {
    let apart = Apart::new();
    let (newest, sound) = apart.go_on(&["tag", "latest", "--pin"]);
    let owner = &apart.place.machine;
    apart.place.run(owner, &["tag", "latest", "--add", "word"]).expect(0);
    cut(&newest);
    let stranger = Machine::new();
    let refused = apart.repair(&stranger, &["--record", name(&newest)]).expect(1);
    assert!(refused.stderr.contains("another"), "{}", refused.stderr);
    assert!(fs::read(&newest).unwrap().is_empty());
    apart.place.run(owner, &["check", "--repair"]).expect(0);
    assert!(fs::read(&newest).unwrap() == sound);
}

#[test]
fn what_is_sound_is_not_said_to_be_written_again() {
    let place = Place::new();
    let record = records(&place.path("repo")).pop().unwrap();
    for dry_run in [&[][..], &["-n"]] {
        let args = ["check", "--repair", "--json", "--record", name(&record)];
        let told = place.run(&place.machine, &[&args, dry_run].concat()).expect(0);
        assert!(told.of_type("repair").is_empty(), "{}", told.stdout);
    }
}

#[test]
fn a_snapshot_that_this_computer_saw_forgotten_does_not_come_back_from_an_older_copy() {
    let place = Place::new();
    place.back_up(&place.machine).expect(0);
    place.back_up(&place.machine).expect(0);
    copy_folder(&place.path("repo"), &place.path("copy"));
    let forgotten = records(&place.path("repo")).remove(1);
    let listed = place.run(&place.machine, &["snapshots", "--json"]).of_type("snapshot");
    let id = listed[1]["id"].as_str().unwrap();
    place.run(&place.machine, &["forget", id]).expect(0);
    assert!(!forgotten.exists());
    let tombstone = place.file("tombstones").join(name(&forgotten));
    let apart = Apart { place, clone: Machine::new(), _home: folder() };
    remove(&tombstone);
    apart.repair(&apart.place.machine, &[]).expect(0);
    assert!(tombstone.exists() && !forgotten.exists());
    remove(&tombstone);
    apart.place.back_up(&apart.place.machine).expect(0);
    assert!(tombstone.exists() && !forgotten.exists());
}

#[test]
fn a_record_that_has_another_s_name_is_told_by_names_of_files() {
    let place = Place::new();
    let record = records(&place.path("repo")).pop().unwrap();
    let other = record.with_file_name("00000000000000aa");
    fs::copy(&record, &other).unwrap();
    let told = words(&place.run(&place.machine, &["check"]).expect(20));
    assert!(told.contains(&format!("it is the record {}", name(&record))), "{told}");
}

#[test]
fn a_folder_in_the_place_of_a_file_is_told_with_a_way_out() {
    let place = Place::new();
    place.back_up(&place.machine).expect(0);
    let [record, set] = ["records", "wrappings"].map(|folder| {
        let file = fs::read_dir(place.file(folder)).unwrap().next().unwrap();
        file.unwrap().path()
    });
    let others = ["config", "holdall-repository"].map(|name| place.file(name));
    let aside = place.path("aside");
    for file in [record, set].into_iter().chain(others) {
        let sound = fs::read(&file).unwrap();
        remove(&file);
        fs::create_dir(&file).unwrap();
        fs::write(file.join("theirs"), "theirs").unwrap();
        let told = words(&place.run(&place.machine, &["check", "--repair"]).expect(20));
        assert!(told.contains("move that folder away"), "{}: {told}", file.display());
        assert!(told.contains(text(&file)), "{}: {told}", file.display());
        fs::rename(&file, &aside).unwrap();
        place.run(&place.machine, &["check", "--repair"]).expect(0);
        assert!(fs::read(&file).unwrap() == sound, "{}", file.display());
        fs::remove_dir_all(&aside).unwrap();
    }
}
