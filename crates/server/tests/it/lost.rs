//! Connections and servers that go away in the middle.

use std::sync::mpsc;
use std::time::Duration;

use holdall_format::ObjectId;
use holdall_protocol::{ClientOptions, Repository, RepositoryError, ServerAddress};
use holdall_testkit::ChaosProxy;

use crate::world::{Machine, World, quick, session};

/// A machine's way through a proxy.
fn through(machine: &Machine, proxy: &ChaosProxy) -> ServerAddress {
    let hosts = vec![proxy.address().to_string()];
    ServerAddress { hosts, ..machine.paired.address.clone() }
}

/// As patient as a client is by default.
fn patient() -> ClientOptions {
    ClientOptions::default()
}

fn id(number: u32) -> ObjectId {
    ObjectId::from_bytes(*blake3::hash(&number.to_le_bytes()).as_bytes())
}

#[test]
fn a_client_outlives_a_server_that_restarts_while_it_puts() {
    let mut world = World::new();
    let machine = world.machine(1);
    let (acknowledged, acknowledgements) = mpsc::channel();
    std::thread::scope(|scope| {
        let machine = &machine;
        let putting = scope.spawn(move || {
            let forge = machine.forge();
            let repository = machine.connect_to(machine.paired.address.clone(), patient()).unwrap();
            let session = session(&repository);
            for number in 0..40 {
                let block = forge.chunks_of_bytes(&[id(number)], 500_000);
                repository.put_blocks(&session, &[block]).unwrap();
                acknowledged.send(number).unwrap();
            }
            let ids: Vec<_> = (0..40).map(id).collect();
            assert_eq!(repository.missing(&session, &ids).unwrap(), [false; 40]);
        });
        for _ in 0..10 {
            acknowledgements.recv().unwrap();
        }
        world.stop();
        world.start();
        putting.join().unwrap();
    });
}

#[test]
fn a_connection_that_is_cut_again_and_again_costs_nothing_but_time() {
    let world = World::new();
    let machine = world.machine(1);
    let proxy = ChaosProxy::start(world.address()).unwrap();
    let repository = machine.connect_to(through(&machine, &proxy), patient()).unwrap();
    let session = session(&repository);
    proxy.cut_repeatedly(7, 20, 300_000);
    let forge = machine.forge();
    let ids: Vec<_> = (0..30).map(id).collect();
    for id in &ids {
        repository.put_blocks(&session, &[forge.chunks_of_bytes(&[*id], 200_000)]).unwrap();
    }
    assert_eq!(repository.missing(&session, &ids).unwrap(), vec![false; ids.len()]);
    assert!(proxy.cuts() > 0);
}

#[test]
fn a_repository_whose_making_was_cut_is_made_once() {
    let world = World::new();
    for (number, cut_after) in (1u8..).zip([3000u64, 3500, 4000, 4500, 5000]) {
        let machine = world.paired(number);
        let proxy = ChaosProxy::start(world.address()).unwrap();
        let repository = machine.connect_to(through(&machine, &proxy), patient()).unwrap();
        proxy.cut_after(cut_after.saturating_sub(proxy.forwarded_bytes()).max(1));
        let new = machine.forge().new_repository();
        repository.create(&new).unwrap();
        assert_eq!(repository.describe().unwrap().config, new.config);
    }
}

#[test]
fn a_server_that_stays_away_is_given_up_after_the_retry_time() {
    let mut world = World::new();
    let machine = world.machine(1);
    let retry_for = Duration::from_millis(300);
    let options = ClientOptions { retry_for, ..quick() };
    let repository = machine.connect_to(machine.paired.address.clone(), options).unwrap();
    world.stop();
    let error = repository.describe().unwrap_err();
    assert!(matches!(error, RepositoryError::Unreachable { .. }), "{error:?}");
}

#[test]
fn a_server_that_ends_waits_for_nobody_who_is_idle() {
    let mut world = World::new();
    let machine = world.machine(1);
    let idle = machine.connect();
    idle.describe().unwrap();
    world.stop();
    world.start();
    idle.describe().unwrap();
}

#[test]
fn a_client_with_a_rate_and_a_local_address_does_the_same_work() {
    let world = World::new();
    let machine = world.machine(1);
    let options = ClientOptions {
        bind: vec!["127.0.0.1".parse().unwrap(), "127.0.0.2".parse().unwrap()],
        upload_bytes_per_second: Some(20_000_000),
        ..quick()
    };
    let repository = machine.connect_to(machine.paired.address.clone(), options).unwrap();
    let session = session(&repository);
    let block = machine.forge().chunks_of_bytes(&[id(1)], 500_000);
    repository.put_blocks(&session, std::slice::from_ref(&block)).unwrap();
    assert_eq!(repository.fetch_objects(&session, &[id(1)], 0).unwrap(), [block]);
    assert!(repository.traffic().sent_bytes > 500_000);
}

#[test]
fn many_callers_share_a_repository() {
    let world = World::new();
    let machine = world.machine(1);
    let options = ClientOptions { streams: 2, ..patient() };
    let repository = machine.connect_to(machine.paired.address.clone(), options).unwrap();
    let session = session(&repository);
    std::thread::scope(|scope| {
        for caller in 0..6u32 {
            let (repository, machine) = (&repository, &machine);
            scope.spawn(move || {
                let forge = holdall_protocol::contract::Forge::new(1, machine.id(), &machine.seed);
                for number in 0..5 {
                    let id = id(caller * 100 + number);
                    let block = forge.chunks_of_bytes(&[id], 100_000 + caller as usize);
                    repository.put_blocks(&session, &[block]).unwrap();
                    assert_eq!(repository.missing(&session, &[id]).unwrap(), [false]);
                    assert_eq!(repository.fetch_objects(&session, &[id], 0).unwrap().len(), 1);
                }
            });
        }
    });
}
