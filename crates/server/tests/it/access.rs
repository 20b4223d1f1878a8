//! Who is let in, and where.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use holdall_format::{ObjectId, PublicKey, RecordKind};
use holdall_protocol::wire::Frames;
use holdall_protocol::{
    ClientOptions, HttpRepository, Invite, InviteError, Repository, RepositoryError, ServerAddress,
    SessionPurpose, pair,
};
use holdall_server::{InviteRequest, Limits, admin};

use crate::raw;
use crate::world::{Machine, World, identity, quick, recovery_seed};

#[test]
fn a_machine_does_its_whole_job_over_the_wire() {
    let world = World::new();
    let machine = world.machine(1);
    let repository = machine.connect();
    assert_eq!(repository.describe().unwrap().machine, machine.id());
    assert_eq!(repository.describe().unwrap().signer, world.server().identity());
    let traffic = repository.traffic();
    assert!(traffic.sent_bytes > 0 && traffic.received_bytes > 0);
    let mut told = 0;
    let report = repository.scrub(&mut |_| told += 1).unwrap();
    assert_eq!(report.damaged, []);
    let without_name = ServerAddress { repository: None, ..machine.paired.address.clone() };
    machine.connect_to(without_name, quick()).unwrap().describe().unwrap();
}

#[test]
fn a_server_with_another_key_is_told_from_one_that_is_not_there() {
    let world = World::new();
    let machine = world.paired(1);
    let mut address = world.server_address();
    address.identity = PublicKey::from_bytes([1; 32]);
    let error = machine.connect_to(address.clone(), quick()).err();
    assert!(matches!(error, Some(RepositoryError::WrongServer { .. })), "{error:?}");

    address.hosts = vec![unused_address()];
    let error = machine.connect_to(address, quick()).err();
    assert!(matches!(error, Some(RepositoryError::Unreachable { .. })), "{error:?}");
}

/// An address of loopback on which nobody listens.
fn unused_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

#[test]
fn a_second_address_is_tried_when_the_first_does_not_answer() {
    let world = World::new();
    let machine = world.machine(1);
    let mut address = machine.paired.address.clone();
    address.hosts.insert(0, unused_address());
    machine.connect_to(address, quick()).unwrap().describe().unwrap();
}

#[test]
fn a_key_that_no_machine_has_may_do_nothing() {
    let world = World::new();
    let machine = world.machine(1);
    let stranger =
        HttpRepository::connect(machine.paired.address, &identity(&[99; 32]), quick()).unwrap();
    let not_allowed = |error| matches!(error, RepositoryError::NotAllowed { .. });
    assert!(not_allowed(stranger.describe().unwrap_err()));
    assert!(not_allowed(stranger.open_session(&SessionPurpose::Read).unwrap_err()));
}

#[test]
fn a_machine_may_not_use_another_s_repository_nor_learn_whether_it_exists() {
    let world = World::new();
    let (one, two) = (world.machine(1), world.machine(2));
    for name in [two.paired.repository.clone(), "nothing".into()] {
        let address = ServerAddress { repository: Some(name), ..one.paired.address.clone() };
        let error = one.connect_to(address, quick()).unwrap().describe().unwrap_err();
        assert_eq!(error.to_string(), "not allowed: a machine may use its own repository only");
    }
}

#[test]
fn a_recovery_identity_reads_and_does_not_write() {
    let world = World::new();
    let machine = world.machine(1);
    let kit = identity(&recovery_seed(1));
    let address = machine.paired.address.clone();
    let kit = HttpRepository::connect(address, &kit, quick()).unwrap();
    kit.describe().unwrap();
    let read = kit.open_session(&SessionPurpose::Read).unwrap().session;
    assert!(kit.put_blocks(&read, &[]).is_err());
    let next = machine.forge().wrappings(2);
    let refused = kit.put_wrappings(&next).unwrap_err();
    assert!(matches!(refused, RepositoryError::NotAllowed { .. }), "{refused:?}");
    assert!(kit.open_session(&SessionPurpose::Backup { parents: vec![] }).is_err());
}

#[test]
fn a_recovery_identity_reads_again_after_the_accounts_were_lost_and_the_folder_was_adopted() {
    let mut world = World::new();
    let name = world.machine(1).paired.repository;
    world.stop();
    std::fs::remove_file(world.folder.path().join("server.redb")).unwrap();
    world.start();
    let request = InviteRequest { repository: Some(name), ..InviteRequest::default() };
    let machine = identity(&[1; 32]);
    let paired = pair(&world.invite_as(&request), "desk", &machine, quick()).unwrap();
    let machine = HttpRepository::connect(paired.address.clone(), &machine, quick()).unwrap();
    machine.describe().unwrap();
    let kit = identity(&recovery_seed(1));
    HttpRepository::connect(paired.address, &kit, quick()).unwrap().describe().unwrap();
}

/// A machine that asks something with a body that it does not send yet.
fn asking(world: &World, machine: &Machine, what: &str, bytes: usize) -> raw::Raw {
    let mut asking = raw::machine(world, &machine.seed);
    let head = "Host: x\r\nConnection: close\r\nExpect: 100-continue\r\n";
    write!(asking, "{what} HTTP/1.1\r\n{head}Content-Length: {bytes}\r\n\r\n").unwrap();
    asking.flush().unwrap();
    // The body is asked for when it is read, so the right was looked at and the turn taken by then.
    let mut continued = [0; 25];
    asking.read_exact(&mut continued).unwrap();
    assert_eq!(&continued, b"HTTP/1.1 100 Continue\r\n\r\n");
    asking
}

#[test]
fn a_key_that_is_revoked_while_its_request_comes_changes_nothing() {
    let world = World::new();
    let machine = world.machine(1);
    let kit = identity(&recovery_seed(1));
    let kit = HttpRepository::connect(machine.paired.address.clone(), &kit, quick()).unwrap();
    let before = kit.describe().unwrap().wrappings;
    let next = machine.forge().wrappings(2);
    let id = ObjectId::from_bytes([1; 32]);
    let blocks = Frames::framed(&[machine.forge().chunks(&[id])]);
    let record = machine.forge().record(RecordKind::Snapshot, id, None);
    let session = format!("sessions/{}", "01".repeat(16));
    let requests = [
        ("PUT", "wrappings".to_owned(), next),
        ("POST", format!("{session}/blocks"), blocks.concat()),
        ("POST", format!("{session}/records"), record),
    ];
    let asked = requests.map(|(verb, of, body)| {
        let what = format!("{verb} /api/v1/repositories/~/{of}");
        (asking(&world, &machine, &what, body.len()), body)
    });
    let id = machine.id().to_string();
    world.admin(&admin::Revoke { machine: id }).unwrap();
    for (mut asked, body) in asked {
        let answer = raw::exchange(&mut asked, &body).unwrap();
        assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("revoked"), "{answer}");
    }
    assert_eq!(kit.describe().unwrap().wrappings, before);
}

#[test]
fn one_machine_gets_half_of_the_workers_at_most_and_gives_them_back() {
    let mut world = World::new();
    let (machine, other) = (world.machine(1), world.machine(2));
    world.stop();
    world.start_with(Limits { workers: 2, requests_of_machine: 100, ..Limits::default() });
    let path = format!("/api/v1/repositories/~/sessions/{}/blocks", "01".repeat(16));
    let stuck = asking(&world, &machine, &format!("POST {path}"), 1000);
    let kit = identity(&recovery_seed(1));
    let kit = HttpRepository::connect(machine.paired.address.clone(), &kit, quick()).unwrap();
    for of_machine in [machine.connect(), kit] {
        let error = of_machine.describe().unwrap_err();
        assert!(error.to_string().contains("busy"), "{error}");
    }
    other.connect().describe().unwrap();
    drop(stuck);
    let patient = ClientOptions::default();
    let repository = machine.connect_to(machine.paired.address.clone(), patient).unwrap();
    repository.describe().unwrap();
    repository.describe().unwrap();
}

#[test]
fn an_invite_lets_one_key_in_once_and_in_time() {
    let world = World::new();
    let reason = |invite: &Invite, seed| match pair(invite, "desk", &identity(&[seed; 32]), quick())
    {
        Err(RepositoryError::NotAllowed { reason, .. }) => reason,
        other => panic!("expected to be refused, got {other:?}"),
    };

    let used = world.invite();
    let paired = pair(&used, "desk", &identity(&[1; 32]), quick()).unwrap();
    assert_eq!(paired.repository, "desk");
    assert_eq!(pair(&used, "desk", &identity(&[1; 32]), quick()).unwrap(), paired);
    assert!(reason(&used, 2).contains("used"));

    let late = world.invite();
    world.clock.advance(Duration::from_secs(601));
    assert!(reason(&late, 3).contains("expired"));

    let forged = Invite { secret: [5; 16].into(), ..world.invite() };
    assert!(reason(&forged, 3).contains("no such invite"));
}

#[test]
fn a_mangled_invite_is_found_before_the_server_is_asked() {
    let text = World::new().invite().to_text();
    let cut = &text[..text.len() - 3];
    assert!(matches!(Invite::from_text(cut), Err(InviteError::Mangled { .. })));
}

#[test]
fn a_replaced_machine_keeps_its_repository_and_its_old_key_loses_it() {
    let world = World::new();
    let old = world.machine(1);
    let old_connection = old.connect();
    old_connection.describe().unwrap();
    let request =
        InviteRequest { for_machine: Some("machine 1".into()), ..InviteRequest::default() };
    let paired = pair(&world.invite_as(&request), "", &identity(&[8; 32]), quick()).unwrap();
    assert_eq!((paired.machine, &paired.repository), (old.id(), &old.paired.repository));
    HttpRepository::connect(paired.address, &identity(&[8; 32]), quick())
        .unwrap()
        .describe()
        .unwrap();
    let error = old_connection.describe().unwrap_err();
    assert!(matches!(error, RepositoryError::NotAllowed { .. }), "{error:?}");
}

#[test]
fn an_interrupted_client_stops_asking() {
    let world = World::new();
    let machine = world.machine(1);
    let options = quick();
    let interrupt = Arc::clone(&options.interrupt);
    let repository = machine.connect_to(machine.paired.address.clone(), options).unwrap();
    interrupt.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(matches!(repository.describe(), Err(RepositoryError::Interrupted)));
}
