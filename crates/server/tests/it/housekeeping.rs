//! What a server does by itself, whether or not anybody asks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use holdall_format::ObjectId;
use holdall_protocol::Repository;
use holdall_server::admin::{self, Quota};
use holdall_server::{Limits, LogSink, Server, ServerOptions};

use crate::world::{World, session};

/// How long it may take until the house was kept.
const PATIENCE: Duration = Duration::from_secs(60);

fn wait_for(what: &str, is_there: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_there() {
        assert!(begun.elapsed() < PATIENCE, "nobody saw to it: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_house_that_is_no_longer_kept_is_told() {
    let mut world = World::new();
    let _machine = world.machine(1);
    world.stop();
    let limits = Limits { keep_house: Duration::from_millis(50), ..Limits::default() };
    let lines = Arc::clone(&world.log);
    let log: LogSink = Arc::new(move |line| {
        assert!(!line.starts_with("prune of"), "what a fault of the program does");
        lines.lock().unwrap().push(line.to_owned());
    });
    let _server = Server::start(ServerOptions { log, ..world.options(limits) }).unwrap();
    let is_told = || world.log.lock().unwrap().iter().any(|line| line.contains("unexpectedly"));
    wait_for("telling that it ended", is_told);
}

#[test]
fn a_server_prunes_scrubs_and_tells_of_a_full_quota_by_itself() {
    let keep_house = Duration::from_millis(50);
    let world = World::with_limits(Limits { keep_house, ..Limits::default() });
    let machine = world.machine(1);
    let name = &machine.paired.repository;
    let told = |text: &str| world.log.lock().unwrap().iter().any(|line| line.contains(text));
    wait_for("pruning", || told(&format!("prune of {name}: 0 snapshots forgotten")));
    let entry = || {
        let listed = world.admin(&admin::ListRepositories {}).unwrap().repositories;
        listed.into_iter().find(|one| one.name == *name).unwrap()
    };
    wait_for("reading everything again", || entry().read_by_ns.is_some());

    let full = Some(Quota::Bytes(1));
    world.admin(&admin::SetQuota { repository: name.clone(), quota: full }).unwrap();
    let repository = machine.connect();
    let session = session(&repository);
    let block = machine.forge().chunks_of_bytes(&[ObjectId::from_bytes([5; 32])], 1000);
    repository.put_blocks(&session, &[block]).unwrap_err();
    wait_for("a full quota", || told(&format!("holdall admin thin {name}")));
}

#[test]
fn who_is_away_for_a_week_is_told_once_a_day() {
    let keep_house = Duration::from_millis(20);
    let world = World::with_limits(Limits { keep_house, ..Limits::default() });
    let [away, here, revoked] = [1, 2, 3].map(|number| world.machine(number));
    let day = Duration::from_secs(24 * 3600);
    let told =
        |text: &str| world.log.lock().unwrap().iter().filter(|line| line.contains(text)).count();
    let house_was_kept = || {
        let before = told("prune of machine-2");
        wait_for("keeping house", || told("prune of machine-2") > before + 1);
    };
    drop(away);
    world.admin(&admin::Revoke { machine: "machine 3".into() }).unwrap();
    drop(revoked);
    world.clock.advance(6 * day);
    here.connect().usage().unwrap();
    house_was_kept();
    assert_eq!(told("not here for a week"), 0);
    world.clock.advance(2 * day);
    wait_for("telling who is away", || {
        told("not here for a week or longer: machine 1 (8 days);") == 1
    });
    house_was_kept();
    assert_eq!(told("not here for a week"), 1);
    world.clock.advance(day);
    wait_for("telling it again", || told("machine 1 (9 days);") == 1);
}
