//! Peers that nobody knows, in numbers: whoever has an invite gets in.

use std::io::Write;
use std::time::Duration;

use holdall_protocol::pair;
use holdall_server::Limits;

use crate::raw::{self, Raw, exchange};
use crate::world::{World, identity, quick};

const CLOSE: &str = "Host: x\r\nConnection: close\r\n\r\n";

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
