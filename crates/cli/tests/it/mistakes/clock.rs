//! A clock that is wrong by decades deletes nothing and keeps nobody out.

use std::time::Duration;

use holdall_testkit::{CompareOptions, compare_trees};

use super::{Scene, Template, tells};
use crate::clocks::{at, has_faketime};
use crate::house::{Machine, Outcome, Server, files_below, small_tree};

const PAST: &str = "1970-01-02 00:00:00";
const FUTURE: &str = "2100-01-01 00:00:00";

/// Runs a command of a machine by another clock.
fn run_at(time: &str, machine: &Machine, args: &[&str]) -> Outcome {
    Outcome::of(&mut at(time, &machine.command(args)))
}

#[test]
fn a_clock_in_1970_or_2100_deletes_nothing() {
    if !has_faketime() {
        return;
    }
    let scene = Scene::of(&Template::make());
    let [repo, source] = ["repo", "source"].map(|name| super::text(&scene.machine, name));
    let backup = ["backup", "-r", &repo, &source, "--json"];
    let mut ids = vec![scene.snapshot.clone()];
    for time in [PAST, FUTURE, PAST] {
        let done = run_at(time, &scene.machine, &backup).expect(0).summary();
        ids.push(done["snapshot_id"].as_str().unwrap().to_owned());
        run_at(time, &scene.machine, &["check", "-r", &repo, "--verify", "all"]).expect(0);
    }
    let listed = scene.run("snapshots -r {repo} --json").expect(0).of_type("snapshot");
    // In the order in which they came, whatever the clock said.
    assert_eq!(listed.iter().map(|one| one["id"].as_str().unwrap()).collect::<Vec<_>>(), ids);
    let years: Vec<_> =
        listed[1..].iter().map(|one| &one["received"].as_str().unwrap()[..4]).collect();
    assert_eq!(years, ["1970", "2100", "1970"], "the clock was not moved");
    let sure: Vec<_> = listed.iter().map(|one| one["received_sure"].as_bool().unwrap()).collect();
    assert_eq!(sure, [true, false, true, false]);
    let sequence: Vec<_> = listed.iter().map(|one| one["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequence, [1, 2, 3, 4]);
    scene.run("backup -r {repo} {source}").expect(0);
    scene.run("check -r {repo} --scrub --verify all").expect(0);
    assert_eq!(files_below(&scene.path("repo/records")).len(), 5);
}

/// Seen: rules went by the times alone, so that the newest snapshot was let go and the one kept that had come
/// while the clock was ahead.
#[test]
fn rules_for_a_directory_keep_what_came_last_and_what_came_before_the_clock_was_set() {
    if !has_faketime() {
        return;
    }
    let scene = Scene::of(&Template::make());
    let [repo, source] = ["repo", "source"].map(|name| super::text(&scene.machine, name));
    let id = |done: Outcome| done.expect(0).summary()["snapshot_id"].as_str().unwrap().to_owned();
    let backup = ["backup", "-r", &repo, &source, "--json"];
    let earlier = id(scene.machine.run(backup));
    let unset = id(run_at(PAST, &scene.machine, &backup));
    let ahead = id(run_at(FUTURE, &scene.machine, &backup));
    let newest = id(scene.machine.run(backup));
    let left = || -> Vec<String> {
        let listed = scene.run("snapshots -r {repo} --json").expect(0).of_type("snapshot");
        listed.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    scene.run("forget -r {repo} --keep-within 1d").expect(0);
    assert_eq!(left(), [&scene.snapshot, &earlier, &unset, &ahead, &newest].map(String::clone));
    scene.run("forget -r {repo} --keep-last 1").expect(0);
    // The first is of a folder that lay elsewhere, so of a series of its own.
    assert_eq!(left(), [scene.snapshot.clone(), unset, newest]);
}

/// Seen: each time that a server was started with a clock up to two weeks ahead, that was believed, and
/// what had been asked to be deleted in a week went at once.
#[test]
fn a_server_that_is_started_with_another_clock_deletes_nothing_and_says_so() {
    if !has_faketime() {
        return;
    }
    let machine = Machine::new().with_password(None);
    let data = machine.path("data");
    let server = Server::start(&data);
    let address = server.address().to_owned();
    machine.pair_with(&server);
    let source = machine.path("source");
    small_tree(&source);
    for number in 0..3 {
        std::fs::write(source.join("new"), number.to_string()).unwrap();
        machine.ok(["backup", source.to_str().unwrap()]);
    }
    let snapshots = || machine.ok(["snapshots", "--json"]).of_type("snapshot");
    let before = snapshots();
    let admin = |args: &[&str]| machine.administer(&data, args).expect(0);
    let name = admin(&["repositories"]).of_type("repository")[0]["name"].clone();
    let name = name.as_str().unwrap();
    admin(&["forget", name, before[0]["id"].as_str().unwrap()]);
    admin(&["retention", name, "--keep-last", "1"]);
    drop(server);
    // In the first hour after a computer's start its clock may yet be set, by up to two weeks: that is no
    // reason to freeze, though it does not count as time either.
    let has_settled = holdall_sys::host::running() > Duration::from_secs(3600);
    for (days, is_far) in [(8, false), (21, false), (34, false), (47, false), (90, true)] {
        let mut ahead = at(&format!("+{days} days"), &Server::command_at(&address, &data));
        let _server = Server::start_by(ahead.stderr(std::process::Stdio::null()), &data);
        let pruned = admin(&["prune"]).of_type("prune");
        if has_settled || is_far {
            assert!(pruned[0]["frozen_until"].is_string(), "{days} days: {pruned:?}");
        }
        assert_eq!(pruned[0]["snapshots_forgotten"], serde_json::json!([]), "{days} days");
        assert_eq!(snapshots().len(), 3, "{days} days");
    }
}

#[test]
fn tls_and_invites_do_not_depend_on_the_clock_of_either_side() {
    if !has_faketime() {
        return;
    }
    for (server_time, client_time) in [(FUTURE, PAST), (PAST, FUTURE)] {
        let machine = Machine::new().with_password(None);
        let data = machine.path("data");
        let mut command = at(server_time, &Server::command(&data));
        let server = Server::start_by(command.stderr(std::process::Stdio::null()), &data);
        // While it runs it makes invites itself, by its own clock.
        let kit = super::text(&machine, "kit.txt");
        run_at(client_time, &machine, &["pair", &server.invite(), "--recovery-kit", &kit])
            .expect(0);
        let (source, target) = (machine.path("source"), super::text(&machine, "target"));
        small_tree(&source);
        let from = format!("latest:{}", source.display());
        run_at(client_time, &machine, &["backup", source.to_str().unwrap()]).expect(0);
        run_at(client_time, &machine, &["restore", &from, "--target", &target]).expect(0);
        assert_eq!(compare_trees(&source, target.as_ref(), &CompareOptions::default()), []);
        // And by the right one.
        machine.ok(["check", "--verify", "all"]);
    }
}

#[test]
fn an_invite_that_has_expired() {
    if !has_faketime() {
        return;
    }
    let machine = Machine::new().with_password(None);
    let data = machine.path("data");
    let server = Server::start(&data);
    let invite = server.invite();
    let address = server.address().to_owned();
    drop(server);
    let mut later = at(FUTURE, &Server::command_at(&address, &data));
    let _later = Server::start_by(later.stderr(std::process::Stdio::null()), &data);
    let advises = "`holdall invite` prints another one";
    tells(&machine.run(["pair", &invite]), 13, "expired", advises);
}
