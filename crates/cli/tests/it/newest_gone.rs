//! The newest record of a machine: nothing follows it, so only those who saw it can miss it.

use std::fs;
use std::path::{Path, PathBuf};

use holdall_testkit::copy_folder;

use crate::house::{Machine, Outcome, text};
use crate::last_copy::{Place, cut, records, remove};

/// Two machines that back up to one directory. Both have seen all records, of which the second one is the newest of the
/// first machine, and the last one the other's.
struct Two {
    place: Place,
    other: Machine,
    /// The file of the newest record of the first machine, what is in it, and the snapshot's id.
    newest: PathBuf,
    sound: Vec<u8>,
    id: String,
}

impl Two {
    fn new() -> Self {
        let (place, other) = (Place::new(), Machine::new());
        write(&place, "second");
        place.back_up(&place.machine).expect(0);
        let newest = records(&place.path("repo")).remove(1);
        let (sound, id) = (fs::read(&newest).unwrap(), ids(&place, &place.machine).remove(1));
        fs::remove_file(place.path("tree/new")).unwrap();
        place.back_up(&other).expect(0);
        Self { place, other, newest, sound, id }
    }

    fn is_sound(&self) -> bool {
        fs::read(&self.newest).is_ok_and(|bytes| bytes == self.sound)
    }

    fn other(&self, args: &[&str]) -> Outcome {
        self.place.run(&self.other, args)
    }

    /// Reads what only the snapshot of that record has.
    fn assert_restores(&self) {
        let file = self.place.path("tree/new");
        let name = format!("{}:{}", self.id, text(&file));
        let dumped = self.place.run(&Machine::new(), &["dump", &name]).expect(0);
        assert_eq!(dumped.stdout, content("second"));
    }
}

/// More than a record holds, and not the same as any other.
fn content(word: &str) -> String {
    format!("{word}\n").repeat(20_000)
}

fn write(place: &Place, word: &str) {
    fs::write(place.path("tree/new"), content(word)).unwrap();
}

fn ids(place: &Place, machine: &Machine) -> Vec<String> {
    let listed = place.run(machine, &["snapshots", "--json"]).of_type("snapshot");
    listed.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

fn forget_caches(machine: &Machine) {
    fs::remove_dir_all(machine.path("cache")).unwrap();
}

#[test]
fn a_pin_that_is_gone_is_told_and_nothing_goes_by_rules_or_is_deleted() {
    for has_cache in [true, false] {
        let place = Place::new();
        write(&place, "second");
        place.back_up(&place.machine).expect(0);
        let pinned = ids(&place, &place.machine).remove(0);
        place.run(&place.machine, &["tag", &pinned, "--pin"]).expect(0);
        let pin = records(&place.path("repo")).pop().unwrap();
        let sound = fs::read(&pin).unwrap();
        remove(&pin);
        if !has_cache {
            forget_caches(&place.machine);
        }
        for command in [
            &["snapshots"][..],
            &["check"],
            &["forget", "--keep-last", "1"],
            &["forget", "--keep-last", "1", "--prune"],
            &["prune"],
        ] {
            let told = place.run(&place.machine, command).expect(20);
            let told = format!("{}{}", told.stdout, told.stderr);
            assert!(told.contains("tags and pins") && told.contains("is gone"), "{told}");
        }
        assert_eq!(ids(&place, &place.machine).len(), 2);

        place.run(&place.machine, &["check", "--repair"]).expect(0);
        assert!(fs::read(&pin).unwrap() == sound);
        place.run(&place.machine, &["forget", "--keep-last", "1", "--prune"]).expect(0);
        assert_eq!(ids(&place, &place.machine)[0], pinned);
    }
}

#[test]
fn the_next_backup_puts_back_by_its_receipt_what_the_cache_lost_too() {
    for is_pin in [false, true] {
        let place = Place::new();
        match is_pin {
            true => place.run(&place.machine, &["tag", "latest", "--pin"]).expect(0),
            false => {
                write(&place, "second");
                place.back_up(&place.machine).expect(0)
            }
        };
        let newest = records(&place.path("repo")).pop().unwrap();
        let sound = fs::read(&newest).unwrap();
        remove(&newest);
        forget_caches(&place.machine);
        let told = place.run(&place.machine, &["snapshots"]).expect(20);
        assert!(told.stderr.contains("`holdall check --repair`"), "{}", told.stderr);
        place.back_up(&place.machine).expect(20);
        assert!(fs::read(&newest).is_ok_and(|bytes| bytes == sound), "is_pin: {is_pin}");
        place.run(&place.machine, &["check"]).expect(0);
    }
}

#[test]
fn the_next_backup_puts_back_a_pin_that_is_gone_and_tells_it_once() {
    let place = Place::new();
    place.run(&place.machine, &["tag", "latest", "--pin"]).expect(0);
    let pin = records(&place.path("repo")).pop().unwrap();
    remove(&pin);
    let told = place.back_up(&place.machine).expect(20);
    assert!(told.stderr.contains("was put back"), "{}", told.stderr);
    assert!(pin.exists());
    place.back_up(&place.machine).expect(0);
    place.run(&place.machine, &["check", "--verify", "all"]).expect(0);
    // Nobody has seen it any more, and it was told.
    place.run(&place.machine, &["tag", "latest", "--pin"]).expect(0);
    remove(&records(&place.path("repo")).pop().unwrap());
    forget_caches(&place.machine);
    place.back_up(&place.machine).expect(20);
    place.back_up(&place.machine).expect(0);
}

/// Who has not seen it goes on without it, and may not take its position.
#[test]
fn the_position_of_one_that_is_gone_is_given_to_no_other() {
    for is_pin in [false, true] {
        let (place, other) = (Place::new(), Machine::new());
        match is_pin {
            true => drop(place.run(&place.machine, &["tag", "latest", "--pin"]).expect(0)),
            false => {
                write(&place, "second");
                place.back_up(&place.machine).expect(0);
                fs::remove_file(place.path("tree/new")).unwrap();
            }
        }
        let newest = records(&place.path("repo")).pop().unwrap();
        let sound = fs::read(&newest).unwrap();
        remove(&newest);
        place.run(&other, &["tag", "latest", "--add", "word"]).expect(0);
        assert!(!newest.exists(), "is_pin: {is_pin}");
        place.run(&place.machine, &["check", "--repair"]).expect(0);
        assert!(fs::read(&newest).unwrap() == sound);
        place.run(&other, &["prune"]).expect(0);
        place.run(&Machine::new(), &["check", "--verify", "all"]).expect(0);
    }
}

#[test]
fn another_machine_that_saw_it_deletes_nothing_and_puts_it_back() {
    let two = Two::new();
    remove(&two.newest);
    for command in
        [&["prune"][..], &["snapshots"], &["check"], &["forget", "--keep-last", "1", "--prune"]]
    {
        let told = two.other(command).expect(20);
        let told = format!("{}{}", told.stdout, told.stderr);
        assert!(told.contains(&two.id) && told.contains("check --repair"), "{told}");
    }
    two.other(&["check", "--repair"]).expect(0);
    assert!(two.is_sound());
    remove(&two.newest);
    two.place.back_up(&two.other).expect(20);
    assert!(two.is_sound());
    two.other(&["prune"]).expect(0);
    two.assert_restores();
    two.place.run(&two.place.machine, &["check"]).expect(0);
}

#[test]
fn who_gives_it_up_has_everybody_go_on() {
    for gives_up in [true, false] {
        let two = Two::new();
        remove(&two.newest);
        let by = if gives_up { &two.other } else { &two.place.machine };
        two.place.run(by, &["forget", &two.id]).expect(0);
        for machine in [&two.other, &two.place.machine, &Machine::new()] {
            two.place.run(machine, &["check"]).expect(0);
            two.place.run(machine, &["prune"]).expect(0);
        }
        two.place.back_up(&two.place.machine).expect(0);
        two.place.back_up(&two.other).expect(0);
        assert!(!two.newest.exists());
        two.place.run(&Machine::new(), &["check", "--verify", "all"]).expect(0);
    }
}

#[test]
fn one_in_the_middle_that_is_given_up_by_who_saw_it_is_missed_by_nobody() {
    let two = Two::new();
    two.place.back_up(&two.place.machine).expect(0);
    remove(&two.newest);
    two.place.run(&Machine::new(), &["snapshots"]).expect(20);
    two.other(&["forget", &two.id]).expect(0);
    for machine in [&two.other, &two.place.machine, &Machine::new()] {
        two.place.run(machine, &["check"]).expect(0);
    }
}

#[test]
fn a_repository_that_was_set_back_is_told_by_all_who_saw_more_until_its_machine_goes_on() {
    let (place, other) = (Place::new(), Machine::new());
    let older = place.path("older");
    copy_folder(&place.path("repo"), &older);
    write(&place, "second");
    place.back_up(&place.machine).expect(0);
    place.back_up(&other).expect(0);
    fs::remove_dir_all(place.path("repo")).unwrap();
    copy_folder(&older, &place.path("repo"));
    write(&place, "third");
    for machine in [&other, &place.machine] {
        place.run(machine, &["snapshots"]).expect(20);
        place.run(machine, &["prune"]).expect(20);
    }
    for machine in [&place.machine, &other] {
        place.back_up(machine).expect(20);
    }
    for machine in [&place.machine, &other] {
        place.back_up(machine).expect(0);
        place.run(machine, &["check", "--verify", "all"]).expect(0);
        place.run(machine, &["prune"]).expect(0);
    }
}

fn zero(file: &Path) {
    let length = fs::metadata(file).unwrap().len();
    fs::write(file, vec![0; length as usize]).unwrap();
}

#[test]
fn one_whose_file_is_empty_comes_back_before_its_machine_goes_on() {
    for harm in [cut, zero] {
        let two = Two::new();
        harm(&two.newest);
        two.place.back_up(&two.place.machine).expect(0);
        assert!(two.is_sound());
    }
}

#[test]
fn one_whose_file_is_empty_and_whose_machine_went_on_comes_back_when_the_owner_says_so() {
    for harm in [cut, zero] {
        for comes_from_copy in [true, false] {
            let two = Two::new();
            let (repo, copy) = (two.place.path("repo"), two.place.path("copy"));
            copy_folder(&repo, &copy);
            harm(&two.newest);
            forget_caches(&two.place.machine);
            write(&two.place, "third");
            two.place.back_up(&two.place.machine).expect(20);
            let number = two.newest.file_name().unwrap().to_str().unwrap();
            let way_out = format!("--record {number}");
            for command in [&["prune"][..], &["check", "--repair"], &["snapshots"]] {
                let told = two.other(command).expect(20);
                let told = format!("{}{}", told.stdout, told.stderr);
                assert!(told.contains(&way_out), "{told}");
            }
            assert!(!two.is_sound(), "nothing shows which record it was");
            // Who removes the file is not rid of it.
            remove(&two.newest);
            for command in [&["prune"][..], &["check"], &["forget", "--keep-last", "1"]] {
                let told = two.other(command).expect(20);
                let told = format!("{}{}", told.stdout, told.stderr);
                assert!(told.contains(&way_out), "{told}");
            }
            harm_again(harm, &two);
            let vouch = ["check", "--repair", "--record", number];
            let stranger = Machine::new();
            two.place.run(&stranger, &vouch).expect(1);
            if comes_from_copy {
                let mut command = stranger.command(vouch);
                command.args(["--from", text(&copy), "-r", text(&repo)]);
                command.env("HOLDALL_FROM_PASSWORD", "correct horse");
                Outcome::of(&mut command).expect(0);
            } else {
                two.other(&vouch).expect(0);
            }
            assert!(two.is_sound());
            two.other(&["prune"]).expect(0);
            two.assert_restores();
        }
    }
}

fn harm_again(harm: fn(&Path), two: &Two) {
    fs::write(&two.newest, &two.sound).unwrap();
    harm(&two.newest);
}

#[test]
fn a_dry_run_names_the_records_that_would_be_put_back() {
    let two = Two::new();
    remove(&two.newest);
    let told = two.other(&["check", "--repair", "-n", "--json"]).expect(20).of_type("repair");
    assert_eq!(told.len(), 1, "{told:?}");
    let file = told[0]["file"].as_str().unwrap();
    assert!(file.ends_with(two.newest.file_name().unwrap().to_str().unwrap()), "{file}");
    assert_eq!(told[0]["dry_run"], true);
    assert!(!two.newest.exists());
}
