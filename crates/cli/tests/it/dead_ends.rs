//! Damage that has a way out: what the message names works, by itself.

use std::fs;
use std::path::{Path, PathBuf};

use holdall_testkit::copy_folder;

use crate::house::{Machine, Outcome, Server, files_below, folder, small_tree, text};
use crate::last_copy::{Place, records};

fn words(outcome: &Outcome) -> String {
    format!("{}{}", outcome.stdout, outcome.stderr)
}

fn name_of(file: &Path) -> String {
    file.file_name().unwrap().to_str().unwrap().to_owned()
}

fn newest_id(place: &Place, machine: &Machine) -> String {
    let listed = place.run(machine, &["snapshots", "--json"]).of_type("snapshot");
    listed.last().unwrap()["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_record_whose_place_another_one_took_is_given_up_for_good() {
    let (place, other) = (Place::new(), Machine::new());
    let (repo, copy, tree) = (place.path("repo"), place.path("copy"), place.path("tree"));
    copy_folder(&repo, &copy);
    place.machine.run(["backup", text(&tree), "-r", text(&copy)]).expect(0);
    place.back_up(&other).expect(0);
    let newest = |repo| records(repo).pop().unwrap();
    assert_eq!(name_of(&newest(&repo)), name_of(&newest(&copy)));
    let listed = place.machine.run(["snapshots", "--json", "-r", text(&copy)]).of_type("snapshot");
    let id = listed.last().unwrap()["id"].as_str().unwrap().to_owned();
    place.run(&place.machine, &["check"]).expect(20);

    let told = place.run(&place.machine, &["forget", &id]).expect(0);
    assert!(told.stderr.contains("given up"), "{}", told.stderr);
    assert!(repo.join("given-up").join(&id).exists());
    for command in [&["check"][..], &["prune"]] {
        place.run(&place.machine, command).expect(0);
        place.run(&other, command).expect(0);
    }
    place.back_up(&place.machine).expect(0);
    place.run(&Machine::new(), &["check", "--verify", "all"]).expect(0);
}

#[test]
fn a_tombstone_that_can_not_be_read_comes_back_from_who_saw_it_or_its_record_is_given_up() {
    for is_known in [true, false] {
        let place = Place::new();
        let id = newest_id(&place, &place.machine);
        place.back_up(&place.machine).expect(0);
        place.run(&place.machine, &["forget", &id]).expect(0);
        place.run(&place.machine, &["snapshots"]).expect(0);
        let tombstone = fs::read_dir(place.file("tombstones")).unwrap().next().unwrap().unwrap();
        fs::write(tombstone.path(), "garbage").unwrap();
        let stranger = Machine::new();
        let by = if is_known { &place.machine } else { &stranger };
        let told = place.run(by, &["prune"]).expect(20);
        assert!(told.stderr.contains("check --repair"), "{}", told.stderr);
        if is_known {
            let told = place.run(by, &["check", "--repair", "--json"]).expect(0);
            assert_eq!(told.of_type("repair").len(), 1, "{}", told.stdout);
            for command in [&["check"][..], &["snapshots"], &["prune"]] {
                place.run(by, command).expect(0);
                place.run(&stranger, command).expect(0);
            }
            assert_ne!(fs::read(tombstone.path()).unwrap(), b"garbage");
            continue;
        }
        let told = place.run(by, &["check", "--repair"]).expect(20);
        let told = words(&told);
        assert!(told.contains(&id) && told.contains("forget"), "{told}");
        assert!(told.contains("quarantine/tombstones-"), "{told}");
        assert!(!tombstone.path().exists());
        // The chain of its machine's records shows for ever that one is missing.
        let told = place.run(by, &["forget", &id]).expect(20);
        assert!(told.stderr.contains("is given up"), "{}", told.stderr);
        place.run(by, &["prune"]).expect(0);
    }
}

#[test]
fn a_tombstone_that_is_gone_comes_back_with_the_next_backup_of_who_saw_it() {
    for harm in [|path: &Path| fs::remove_file(path), |path: &Path| fs::write(path, "garbage")] {
        let place = Place::new();
        let id = newest_id(&place, &place.machine);
        place.back_up(&place.machine).expect(0);
        place.run(&place.machine, &["forget", &id]).expect(0);
        let tombstone = fs::read_dir(place.file("tombstones")).unwrap().next().unwrap().unwrap();
        let sound = fs::read(tombstone.path()).unwrap();
        harm(&tombstone.path()).unwrap();
        place.run(&Machine::new(), &["snapshots"]).expect(20);
        let told = place.back_up(&place.machine).expect(0);
        assert!(told.stderr.contains("tombstones/"), "{}", told.stderr);
        assert!(fs::read(tombstone.path()).unwrap() == sound);
        place.run(&Machine::new(), &["check"]).expect(0);
    }
}

#[test]
fn what_was_given_up_says_how_it_comes_back_and_how_the_waiting_ends() {
    let place = Place::new();
    place.back_up(&place.machine).expect(0);
    place.back_up(&place.machine).expect(0);
    let gone = records(&place.path("repo")).remove(1);
    let sound = fs::read(&gone).unwrap();
    fs::remove_file(&gone).unwrap();
    let told = words(&place.run(&Machine::new(), &["check"]).expect(20));
    assert!(!told.contains("--record"), "nobody knows its file: {told}");
    let id = told.split_once(", which ").unwrap().0.rsplit(' ').next().unwrap();
    place.run(&Machine::new(), &["forget", id]).expect(20);
    let note = place.path("repo").join("given-up").join(id);
    let told = place.back_up(&place.machine).expect(20);
    for way_out in [format!("given-up/{id}"), format!("holdall forget {id}")] {
        assert!(told.stderr.contains(&way_out), "{}", told.stderr);
    }
    let told = words(&place.run(&place.machine, &["check"]).expect(20));
    assert!(told.contains(&format!("--record {}", name_of(&gone))), "{told}");

    // A folder of that name says nothing.
    fs::remove_file(&note).unwrap();
    fs::create_dir(&note).unwrap();
    let told = place.back_up(&place.machine).expect(0);
    assert!(told.stderr.contains("put back"), "{}", told.stderr);
    assert!(fs::read(&gone).unwrap() == sound);
}

#[test]
fn what_the_state_lost_of_a_directory_is_made_anew_and_told() {
    let place = Place::new();
    let state = place.machine.path("config/state");
    let state = if state.exists() { state } else { place.machine.path("state") };
    let kept = fs::read_dir(state.join("directories")).unwrap().next().unwrap().unwrap().path();
    let sound = fs::read(&kept).unwrap();
    for becomes_folder in [false, true] {
        fs::write(&kept, "garbage").unwrap();
        if becomes_folder {
            fs::remove_file(&kept).unwrap();
            fs::create_dir(&kept).unwrap();
        }
        let told = place.run(&place.machine, &["snapshots"]).expect(0);
        assert!(told.stderr.contains(text(&kept)), "{}", told.stderr);
        assert!(fs::read(&kept).unwrap() == sound);
        let beside = fs::read_dir(kept.parent().unwrap()).unwrap();
        assert!(beside.flatten().any(|entry| text(&entry.path()).contains(".damaged")));
        let told = place.run(&place.machine, &["snapshots"]).expect(0);
        assert_eq!(told.stderr, "");
    }
}

#[test]
fn a_folder_in_the_place_of_what_the_state_keeps_is_named_with_a_way_out() {
    let place = Place::new();
    let config = place.machine.path("config");
    let mut found = 0;
    for file in ["identity.json", "receipts"] {
        for path in files_below(&config) {
            let is_it = text(&path).ends_with(file) || text(path.parent().unwrap()).ends_with(file);
            if !is_it {
                continue;
            }
            found += 1;
            let sound = fs::read(&path).unwrap();
            fs::remove_file(&path).unwrap();
            fs::create_dir(&path).unwrap();
            let told =
                place.back_up(&place.machine).expect(if file == "receipts" { 20 } else { 1 });
            assert!(told.stderr.contains(text(&path)), "{}", told.stderr);
            assert!(told.stderr.contains("move"), "{}", told.stderr);
            fs::remove_dir(&path).unwrap();
            fs::write(&path, sound).unwrap();
        }
    }
    assert_eq!(found, 2);
    place.back_up(&place.machine).expect(0);
}

/// A machine that is paired with a server and backed up there; and the folder of its repository.
fn served() -> (tempfile::TempDir, Server, Machine, PathBuf) {
    let home = folder();
    let tree = home.path().join("tree");
    small_tree(&tree);
    let server = Server::start(&home.path().join("data"));
    let machine = Machine::new();
    machine.pair_with_password(&server);
    machine.ok(["backup", "-q", text(&tree)]);
    let repositories = home.path().join("data/repositories");
    let repo = fs::read_dir(repositories).unwrap().next().unwrap().unwrap().path();
    (home, server, machine, repo)
}

#[test]
fn a_machine_that_gives_a_server_a_record_back_is_done() {
    let (_home, _server, machine, repo) = served();
    let record = records(&repo).pop().unwrap();
    let sound = fs::read(&record).unwrap();
    fs::write(&record, &sound[..sound.len() - 1]).unwrap();
    let told = machine.run(["check"]).expect(20);
    let told = format!("{}{}", told.stdout, told.stderr);
    assert!(told.contains("administrator") && !told.contains("--record"), "{told}");
    machine.run(["check", "--repair"]).expect(0);
    assert!(fs::read(&record).unwrap() == sound);
    machine.run(["check", "--repair"]).expect(13);
}

#[test]
fn a_new_computer_is_told_who_gives_a_server_its_keys_back() {
    let (home, server, _machine, repo) = served();
    let data = home.path().join("data");
    let address = server.address().to_owned();
    drop(server);
    for folder in ["wrappings", "spare"] {
        fs::write(repo.join(folder).join("0000000000000001"), "garbage").unwrap();
    }
    let server = Server::start_by(&mut Server::command_at(&address, &data), &data);
    let name = text(&repo).rsplit('/').next().unwrap().to_owned();
    let invite = server.invite_with(&["--for", &name]);
    let told = Machine::new().run(["pair", &invite]).expect(20);
    assert!(told.stderr.contains("administrator puts back a copy"), "{}", told.stderr);
}

#[test]
fn a_server_tells_that_its_newest_record_is_gone_and_deletes_nothing() {
    let (home, server, machine, repo) = served();
    let (data, address) = (home.path().join("data"), server.address().to_owned());
    drop(server);
    let record = records(&repo).pop().unwrap();
    let sound = fs::read(&record).unwrap();
    fs::remove_file(&record).unwrap();
    let _server = Server::start_by(&mut Server::command_at(&address, &data), &data);
    let scrubbed = machine.administer(&data, &["scrub"]).expect(20);
    assert!(scrubbed.stdout.contains("is gone"), "{}", scrubbed.stdout);
    let pruned = machine.administer(&data, &["prune"]).expect(1);
    assert!(pruned.stdout.contains("nothing is deleted"), "{}{}", pruned.stdout, pruned.stderr);
    assert_eq!(fs::read_dir(repo.join("condemned")).unwrap().count(), 0);

    machine.run(["check", "--repair"]).expect(0);
    assert!(fs::read(&record).unwrap() == sound);
    machine.administer(&data, &["scrub"]).expect(0);
    machine.administer(&data, &["prune"]).expect(0);

    // Its machine goes on without it.
    fs::remove_file(&record).unwrap();
    drop(_server);
    let _server = Server::start_by(&mut Server::command_at(&address, &data), &data);
    fs::remove_dir_all(machine.path("cache")).unwrap();
    fs::remove_dir_all(machine.path("config/state/receipts")).unwrap();
    machine.administer(&data, &["prune"]).expect(1);
    machine.run(["backup", text(&home.path().join("tree"))]).expect(0);
    machine.administer(&data, &["prune"]).expect(0);
}

#[test]
fn a_pipe_in_the_place_of_the_cache_keeps_nobody_from_anything() {
    let (place, machine) = (Place::new(), Machine::new());
    let made = std::process::Command::new("mkfifo").arg(machine.path("cache")).status();
    assert!(made.unwrap().success());
    for command in [&["snapshots"][..], &["stats"], &["check"], &["prune", "-n"]] {
        let told = place.run(&machine, command).expect(0);
        assert!(told.stderr.contains("keeps no cache"), "{}", told.stderr);
    }
    place.back_up(&machine).expect(0);
    place.restores(&machine);
}

/// Seen: the record was called damaged, which is sound.
#[test]
fn a_tombstone_that_can_not_be_read_beside_its_record_is_named_with_it() {
    let place = Place::new();
    let record = name_of(&records(&place.path("repo")).pop().unwrap());
    fs::write(place.file("tombstones").join(&record), "garbage").unwrap();
    let told = words(&place.back_up(&Machine::new())).replace('\n', " ");
    assert!(told.contains(&format!("or tombstones/{record} if that is there")), "{told}");
}
