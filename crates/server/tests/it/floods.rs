//! Peers that nobody knows, in numbers: the log stays short, and whoever has an invite gets in.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use holdall_protocol::pair;
use holdall_protocol::wire::PairRequest;
use holdall_server::Limits;

use crate::raw::{self, Raw, exchange};
use crate::world::{World, identity, quick};

const CLOSE: &str = "Host: x\r\nConnection: close\r\n\r\n";

/// Sends a request and reads what comes of its answer at once.
fn ask(raw: &mut Raw, request: &str) -> String {
    raw.write_all(request.as_bytes()).unwrap();
    raw.flush().unwrap();
    let (mut answer, mut piece) = (String::new(), [0; 4096]);
    while !answer.ends_with('}')
        && let Ok(bytes @ 1..) = raw.read(&mut piece)
    {
        answer.push_str(&String::from_utf8_lossy(&piece[..bytes]));
    }
    answer
}

/// A pairing with an invite that nobody made.
fn guess() -> String {
    let body = PairRequest::new(&[0; 16], "guess").encode();
    let body = String::from_utf8_lossy(&body).into_owned();
    format!("POST /api/v1/pair HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn what_strangers_are_refused_takes_a_line_a_second_however_much_it_is() {
    let mut world = World::new();
    let mut stranger = raw::machine(&world, &[77; 32]);
    for _ in 0..100 {
        let answer = ask(&mut stranger, "GET /api/v1/repositories/~ HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    }
    for _ in 0..20 {
        let mut stranger = raw::machine(&world, &[78; 32]);
        let answer = ask(&mut stranger, &guess());
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    }
    world.stop();
    let log = world.log.lock().unwrap();
    assert!(log.len() <= 3, "{} lines: {:#?}", log.len(), &log[..10]);
    assert!(log[0].contains("describe by key"), "{log:#?}");
    assert!(log.iter().any(|line| line.contains("119 ")), "{log:#?}");
}

/// Connections that were let in and ask nothing.
fn idle(world: &World, number: usize) -> Vec<Raw> {
    let mut held: Vec<_> = (0..number).map(|_| raw::browser(world, &[]).0).collect();
    for raw in &mut held {
        let _ = raw.conn.complete_io(&mut raw.sock);
    }
    held
}

/// A connection that has sent the head of a pairing and nothing of its body.
fn half_of_a_pairing(world: &World) -> Raw {
    let mut raw = raw::machine(world, &[77; 32]);
    let head = "POST /api/v1/pair HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n";
    // The server may end it before all of it was sent.
    let _ = raw.write_all(head.as_bytes()).and_then(|()| raw.flush());
    raw
}

#[test]
fn a_pairing_whose_body_does_not_come_ends_soon() {
    let idle_stranger = Duration::from_millis(50);
    let world = World::with_limits(Limits { idle_stranger, ..Limits::default() });
    let mut slow = half_of_a_pairing(&world);
    let answer = raw::read_to_end(&mut slow);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
}

#[test]
fn strangers_that_ask_nothing_give_way_to_those_that_do() {
    let world = World::with_limits(Limits { strangers: 4, ..Limits::default() });
    let _idle = idle(&world, 8);
    let (mut browser, _) = raw::browser(&world, &[]);
    let answer = exchange(&mut browser, format!("GET /healthz HTTP/1.1\r\n{CLOSE}").as_bytes());
    assert!(answer.as_deref().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200")), "{answer:?}");
    let _slow: Vec<_> = (0..8).map(|_| half_of_a_pairing(&world)).collect();
    pair(&world.invite(), "guest", &identity(&[60; 32]), quick()).unwrap();
}

#[test]
fn an_invite_lets_in_while_guesses_wait_for_their_answer() {
    let limits = Limits {
        strangers: 4,
        refused_pairings_of_address: 1000,
        refused_pairing_delay: Duration::from_secs(3600),
        ..Limits::default()
    };
    let mut world = World::with_limits(limits);
    let guess = guess();
    let mut guessing = Vec::new();
    for _ in 0..20 {
        let mut stranger = raw::machine(&world, &[77; 32]);
        stranger.write_all(guess.as_bytes()).and_then(|()| stranger.flush()).unwrap();
        guessing.push(stranger);
    }
    pair(&world.invite(), "guest", &identity(&[60; 32]), quick()).unwrap();
    drop(guessing);
    world.stop();
    let log = world.log.lock().unwrap();
    assert!(log[0].contains("pair by key"), "{log:#?}");
    assert!(log.iter().any(|line| line.contains("paired guest")), "{log:#?}");
}

#[test]
fn too_many_guesses_end_their_connection_and_a_good_invite_is_taken_all_the_same() {
    let limits = Limits {
        refused_pairings_of_address: 2,
        refused_pairing_delay: Duration::ZERO,
        ..Limits::default()
    };
    let world = World::with_limits(limits);
    let mut stranger = raw::machine(&world, &[77; 32]);
    let answers = [0; 3].map(|_| ask(&mut stranger, &guess()).to_lowercase());
    for answer in &answers {
        assert!(answer.starts_with("http/1.1 403"), "{answer}");
    }
    let ends = answers.map(|answer| answer.contains("connection: close"));
    assert_eq!(ends, [false, false, true]);
    assert_eq!(raw::read_to_end(&mut stranger), "");
    pair(&world.invite(), "guest", &identity(&[60; 32]), quick()).unwrap();
    world.clock.advance(Duration::from_secs(60));
    let answer = ask(&mut raw::machine(&world, &[77; 32]), &guess()).to_lowercase();
    assert!(!answer.contains("connection: close"), "{answer}");
}

#[test]
fn a_handshake_that_breaks_the_rules_is_told_and_one_that_only_ends_is_not() {
    let mut world = World::new();
    drop(TcpStream::connect(world.address()).unwrap());
    let mut broken = TcpStream::connect(world.address()).unwrap();
    broken.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let _ = broken.read_to_end(&mut Vec::new());
    world.stop();
    let log = world.log.lock().unwrap();
    let refused: Vec<_> = log.iter().filter(|line| line.contains("handshake")).collect();
    assert_eq!(refused.len(), 1, "{log:#?}");
    assert!(refused[0].contains("from 127.0.0.1"), "{refused:?}");
}
