//! Configuration and wrapped keys that are another repository's, of the same password: a folder was copied into the wrong
//! one. The newest record says which repository it is, and nothing of either is lost.

use std::fs;
use std::path::Path;

use holdall_testkit::copy_folder;

use crate::house::{Machine, Server, folder, small_tree, text};
use crate::last_copy::{Place, cut, records, remove};

const CONFIG: &str = "config";
const SET: &str = "wrappings/0000000000000001";
const SPARE: &str = "spare/0000000000000001";

/// Puts files of one repository in the places of those of another.
fn swap(from: &Path, into: &Path, names: &[&str]) {
    for name in names {
        fs::copy(from.join(name), into.join(name)).unwrap();
    }
}

/// Those of these files that are what they were.
fn are_as_in(before: &Path, now: &Path) -> bool {
    [CONFIG, SET, SPARE]
        .iter()
        .all(|name| fs::read(before.join(name)).unwrap() == fs::read(now.join(name)).unwrap())
}

/// Whether a file with these bytes is in the folder for what a repair took out of the way.
fn is_kept_aside(repo: &Path, bytes: &[u8]) -> bool {
    let names = fs::read_dir(repo.join("quarantine")).unwrap();
    names.flatten().any(|entry| fs::read(entry.path()).unwrap() == bytes)
}

#[test]
fn parts_of_another_repository_open_nothing_beside_a_spare_that_fits_the_records() {
    let (place, other) = (Place::new(), Place::new());
    let [repo, before] = ["repo", "before"].map(|name| place.path(name));
    copy_folder(&repo, &before);
    let foreign = other.path("repo");
    for names in [&[CONFIG, SET][..], &[CONFIG], &[SET], &[SPARE]] {
        swap(&foreign, &repo, names);
        place.restores(&Machine::new());
        assert!(!are_as_in(&before, &repo), "a reader writes nothing");
        place.run(&Machine::new(), &["check"]).expect(20);
        place.back_up(&place.machine).expect(0);
        assert!(are_as_in(&before, &repo), "{names:?}");
        for name in names {
            assert!(is_kept_aside(&repo, &fs::read(foreign.join(name)).unwrap()), "{name}");
        }
        place.run(&Machine::new(), &["check", "--verify", "all"]).expect(0);

        swap(&foreign, &repo, names);
        let repaired = place.run(&Machine::new(), &["check", "--repair", "--json"]).expect(0);
        assert_eq!(repaired.of_type("repair").len(), names.len(), "{}", repaired.stdout);
        assert!(are_as_in(&before, &repo), "{names:?}");
    }
}

#[test]
fn where_all_parts_are_another_repository_s_nothing_is_written_and_the_machine_gives_them_back() {
    let (place, other) = (Place::new(), Place::new());
    let [repo, before] = ["repo", "before"].map(|name| place.path(name));
    copy_folder(&repo, &before);
    for names in [&[CONFIG, SET, SPARE][..], &[CONFIG, SPARE]] {
        swap(&other.path("repo"), &repo, names);
        let swapped = place.path("swapped");
        copy_folder(&repo, &swapped);
        for command in [&["snapshots"][..], &["check", "--repair"]] {
            let told = place.run(&Machine::new(), command).expect(20);
            assert!(told.stderr.contains("another repository"), "{}", told.stderr);
            assert!(told.stderr.contains("config"), "{}", told.stderr);
        }
        assert!(are_as_in(&swapped, &repo));
        fs::remove_dir_all(&swapped).unwrap();
        place.back_up(&place.machine).expect(0);
        assert!(are_as_in(&before, &repo));
        let foreign = fs::read(other.path("repo").join(SPARE)).unwrap();
        assert!(is_kept_aside(&repo, &foreign));
        place.restores(&Machine::new());
    }
}

#[test]
fn without_a_record_two_whole_sets_of_keys_are_refused() {
    let (place, other) = (Place::new(), Place::new());
    let repo = place.path("repo");
    records(&repo).iter().for_each(|record| remove(record));
    let spare = fs::read(repo.join(SPARE)).unwrap();
    swap(&other.path("repo"), &repo, &[CONFIG, SET]);
    let told = place.run(&Machine::new(), &["check", "--repair"]).expect(20);
    assert!(told.stderr.contains("two repositories"), "{}", told.stderr);
    assert!(fs::read(repo.join(SPARE)).unwrap() == spare);
}

#[test]
fn a_server_opens_by_what_fits_its_records() {
    let home = folder();
    let (data, tree) = (home.path().join("data"), home.path().join("tree"));
    small_tree(&tree);
    let server = Server::start(&data);
    let (machine, address) = (Machine::new(), server.address().to_owned());
    machine.pair_with(&server);
    machine.ok(["backup", "-q", text(&tree)]);
    drop(server);
    let repositories = data.join("repositories");
    let repo = fs::read_dir(&repositories).unwrap().next().unwrap().unwrap().path();
    let before = home.path().join("before");
    copy_folder(&repo, &before);
    swap(&Place::new().path("repo"), &repo, &[CONFIG, SET]);
    let _server = Server::start_by(&mut Server::command_at(&address, &data), &data);
    machine.ok(["backup", "-q", text(&tree)]);
    assert!(are_as_in(&before, &repo));
}

#[test]
fn a_recovery_kit_makes_no_new_keys_where_a_sound_set_is() {
    let place = Place::new();
    let set = fs::read(place.file(SET)).unwrap();
    [CONFIG, SPARE].iter().for_each(|name| cut(&place.file(name)));
    let stranger = Machine::new().with_password(None);
    let kit = place.path("kit");
    let paired = place.run(&stranger, &["pair", "--recovery-kit", text(&kit)]).expect(0);
    assert!(!paired.stderr.contains("holdall key add"), "{}", paired.stderr);
    assert!(fs::read(place.file(SET)).unwrap() == set);
    assert_eq!(fs::read_dir(place.file("wrappings")).unwrap().count(), 1);
    place.restores(&Machine::new());
}
