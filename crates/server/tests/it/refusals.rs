//! What strangers and broken clients get.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use holdall_format::ObjectId;
use holdall_protocol::Repository;
use holdall_protocol::wire::{MAX_IDS_BODY_BYTES, MAX_PUT_BODY_BYTES};
use holdall_server::Limits;

use crate::raw::{self, exchange};
use crate::world::{Machine, World, session};

fn status(answer: &str) -> &str {
    answer.get(9..12).unwrap_or(answer)
}

const CLOSE: &str = "Host: x\r\nConnection: close\r\n\r\n";

#[test]
fn a_browser_is_never_asked_for_a_certificate_and_sees_open_pages_only() {
    let world = World::new();
    for alpn in [&[][..], &[&b"http/1.1"[..]]] {
        for (path, expected) in
            [("/healthz", "200"), ("/", "200"), ("/api/v1/repositories/~", "404"), ("/x", "404")]
        {
            let (mut browser, asked) = raw::browser(&world, alpn);
            let request =
                format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
            let answer = exchange(&mut browser, request.as_bytes()).unwrap();
            assert_eq!(status(&answer), expected, "{path}: {answer}");
            assert!(!asked.was_asked());
        }
    }
}

#[test]
fn under_the_client_s_name_a_certificate_is_required() {
    let world = World::new();
    let (mut browser, asked) = raw::browser(&world, &[b"holdall/1"]);
    let request = format!("GET /healthz HTTP/1.1\r\n{CLOSE}");
    let answer = exchange(&mut browser, request.as_bytes()).unwrap_or_default();
    assert!(asked.was_asked());
    assert_eq!(answer, "", "served without a key");
}

#[test]
fn requests_that_are_no_requests_end_their_connection_and_nothing_else() {
    let world = World::new();
    let machine = world.machine(1);
    let long = format!("GET /{} HTTP/1.1\r\n{CLOSE}", "a".repeat(100_000));
    let many = format!("GET / HTTP/1.1\r\n{}{CLOSE}", "X: y\r\n".repeat(100));
    for bytes in ["\0\0\0\0\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", &long, &many] {
        let mut raw = raw::machine(&world, &machine.seed);
        let answer = exchange(&mut raw, bytes.as_bytes()).unwrap_or_default();
        assert!(answer.is_empty() || status(&answer).starts_with('4'), "{answer}");
    }
    TcpStream::connect(world.address()).unwrap().write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    holdall_protocol::Repository::describe(&machine.connect()).unwrap();
}

#[test]
fn bodies_over_their_limit_or_of_unknown_length_are_refused_before_they_are_read() {
    let world = World::new();
    let machine = world.machine(1);
    let session = session(&machine.connect());
    let base = format!("/api/v1/repositories/~/sessions/{session}");
    for (verb, length, expected) in [
        ("blocks", Some(MAX_PUT_BODY_BYTES + 1), "413"),
        ("blocks", Some(usize::MAX / 4), "413"),
        ("missing", Some(MAX_IDS_BODY_BYTES + 1), "413"),
        ("close", Some(usize::MAX / 4), "200"),
        ("blocks", None, "400"),
    ] {
        let head = match length {
            Some(length) => format!("Content-Length: {length}\r\n"),
            None => "Transfer-Encoding: chunked\r\n".to_owned(),
        };
        let mut raw = raw::machine(&world, &machine.seed);
        write!(raw, "POST {base}/{verb} HTTP/1.1\r\n{head}{CLOSE}").unwrap();
        raw.flush().unwrap();
        // No byte of the body was sent; ending here ends the server's wait for it.
        raw.conn.send_close_notify();
        raw.flush().unwrap();
        let answer = raw::read_to_end(&mut raw);
        assert_eq!(status(&answer), expected, "{verb} {length:?}: {answer}");
    }
}

#[test]
fn bodies_that_break_the_format_are_refused() {
    let world = World::new();
    let machine = world.machine(1);
    let session = session(&machine.connect());
    let base = format!("/api/v1/repositories/~/sessions/{session}");
    for (method, path, body) in [
        ("POST", "/api/v1/pair".to_owned(), "{}"),
        ("POST", "/api/v1/repositories/~/sessions".to_owned(), "{\"purpose\":\"delete\"}"),
        ("PUT", "/api/v1/repositories/~".to_owned(), "\u{1}\0\0\0"),
        ("POST", format!("{base}/missing"), "not a multiple of 32"),
        ("POST", format!("{base}/blocks"), "\u{4}\0\0\0HBlk"),
        ("POST", format!("{base}/records"), "HRec"),
        ("POST", format!("{base}/fetch?copy=0"), "x"),
    ] {
        let mut raw = raw::machine(&world, &machine.seed);
        let length = body.len();
        let request =
            format!("{method} {path} HTTP/1.1\r\nContent-Length: {length}\r\n{CLOSE}{body}");
        let answer = exchange(&mut raw, request.as_bytes()).unwrap();
        assert_eq!(status(&answer), "400", "{path}: {answer}");
        assert!(answer.contains("\"error\":\"refused\""), "{answer}");
    }
}

#[test]
fn paths_and_headers_that_make_no_sense_are_refused_and_the_server_goes_on() {
    let world = World::new();
    let machine = world.machine(1);
    let post = "POST /api/v1/repositories/~/sessions";
    for request in [
        "GET /api/v1/repositories/../../identity.key HTTP/1.1\r\n".to_owned(),
        "GET /api/v1/repositories/%2e%2e%2fidentity.key HTTP/1.1\r\n".to_owned(),
        "GET /api/v1/repositories/machine-1%00 HTTP/1.1\r\n".to_owned(),
        "GET //identity.key HTTP/1.1\r\n".to_owned(),
        "BREW /api/v1/repositories/~ HTTP/1.1\r\n".to_owned(),
        "GET /api/v1/repositories/~ HTTP/1.1\r\nX: \0\r\n".to_owned(),
        format!("{post}/zz/blocks HTTP/1.1\r\nContent-Length: 0\r\n"),
        format!("{post}/{}/close HTTP/1.1\r\nContent-Length: 0\r\n", "00".repeat(17)),
        format!("{post} HTTP/1.1\r\nContent-Length: -1\r\n"),
        format!("{post} HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n"),
        format!("{post} HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n"),
        format!("{post} HTTP/1.1\r\nTransfer-Encoding: gzip\r\n"),
        format!("{post} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{}\r\n", "F".repeat(40)),
    ] {
        let mut raw = raw::machine(&world, &machine.seed);
        raw.write_all(format!("{request}{CLOSE}").as_bytes()).unwrap();
        raw.conn.send_close_notify();
        raw.flush().unwrap();
        let answer = raw::read_to_end(&mut raw);
        assert!(answer.is_empty() || status(&answer).starts_with('4'), "{request}: {answer}");
    }
    holdall_protocol::Repository::describe(&machine.connect()).unwrap();
}

/// Whether a connection was let in: the server ends others at once, and waits on this one.
fn is_open(raw: &mut raw::Raw) -> bool {
    raw.sock.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let read = raw.read(&mut [0; 1]);
    matches!(read, Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()))
}

#[test]
fn connections_of_one_machine_that_ask_nothing_leave_room_for_the_others() {
    let limits = Limits { connections: 8, connections_of_machine: 4, ..Limits::default() };
    let world = World::with_limits(limits);
    let (greedy, honest) = (world.machine(1), world.machine(2));
    let mut held: Vec<_> = (0..12).map(|_| raw::machine(&world, &greedy.seed)).collect();
    for raw in &mut held {
        // The server may have ended it before its own end of the handshake was sent.
        let _ = raw.conn.complete_io(&mut raw.sock);
    }
    held.retain_mut(is_open);
    assert_eq!(held.len(), 4);
    honest.connect().describe().unwrap();
    drop(held);
    greedy.connect().describe().unwrap();
}

#[test]
fn connections_of_strangers_that_ask_nothing_leave_room_for_machines() {
    let world = World::with_limits(Limits { connections: 8, strangers: 3, ..Limits::default() });
    let machine = world.machine(1);
    let mut held: Vec<_> = (0..12).map(|_| raw::browser(&world, &[]).0).collect();
    for raw in &mut held {
        let _ = raw.conn.complete_io(&mut raw.sock);
    }
    held.retain_mut(is_open);
    assert_eq!(held.len(), 3);
    machine.connect().describe().unwrap();
}

/// How many bytes a connection takes after `begun` was sent, one every 50 ms, until it ends.
fn drips(world: &World, machine: &Machine, begun: &str) -> usize {
    let mut raw = raw::machine(world, &machine.seed);
    raw.write_all(begun.as_bytes()).unwrap();
    let drip = |_: &i32| {
        std::thread::sleep(Duration::from_millis(50));
        raw.write_all(b"x").and_then(|()| raw.flush()).is_ok()
    };
    (0..200).take_while(drip).count()
}

#[test]
fn a_head_that_comes_byte_by_byte_is_given_up() {
    let idle = Duration::from_millis(300);
    let world = World::with_limits(Limits { idle, ..Limits::default() });
    let drips = drips(&world, &world.machine(1), "GET / HTTP/1.1\r\nX: ");
    assert!((3..100).contains(&drips), "{drips}");
}

#[test]
fn a_body_that_comes_byte_by_byte_is_given_up() {
    let mut world = World::new();
    let machine = world.machine(1);
    let session = session(&machine.connect());
    world.stop();
    world.start_with(Limits { stalled: Duration::from_millis(300), ..Limits::default() });
    let path = format!("/api/v1/repositories/~/sessions/{session}/blocks");
    let begun = format!("POST {path} HTTP/1.1\r\nContent-Length: 1000\r\n{CLOSE}");
    let drips = drips(&world, &machine, &begun);
    assert!((3..100).contains(&drips), "{drips}");
}

#[test]
fn no_verb_deletes() {
    let world = World::new();
    let machine = world.machine(1);
    let session = session(&machine.connect());
    for path in
        ["/api/v1/repositories/~".to_owned(), format!("/api/v1/repositories/~/sessions/{session}")]
    {
        let mut raw = raw::machine(&world, &machine.seed);
        let answer = exchange(&mut raw, format!("DELETE {path} HTTP/1.1\r\n{CLOSE}").as_bytes());
        assert_eq!(status(&answer.unwrap()), "404");
    }
    holdall_protocol::Repository::describe(&machine.connect()).unwrap();
}

#[test]
fn a_peer_that_says_nothing_is_dropped() {
    let handshake = Duration::from_millis(20);
    let world = World::with_limits(Limits { handshake, ..Limits::default() });
    let mut silent = TcpStream::connect(world.address()).unwrap();
    assert!(matches!(silent.read(&mut [0; 10]), Ok(0) | Err(_)));
}

#[test]
fn a_connection_without_requests_is_dropped() {
    let mut world = World::new();
    let machine = world.machine(1);
    world.stop();
    let soon = Duration::from_millis(20);
    world.start_with(Limits { idle: soon, idle_stranger: soon, ..Limits::default() });
    let machine = raw::machine(&world, &machine.seed);
    for mut idle in [machine, raw::browser(&world, &[]).0, raw::machine(&world, &[77; 32])] {
        assert!(!raw::read_to_end(&mut idle).contains("200 OK"));
    }
}

#[test]
fn a_stalled_body_is_given_up() {
    let mut world = World::new();
    let machine = world.machine(1);
    let session = session(&machine.connect());
    world.stop();
    world.start_with(Limits { stalled: Duration::from_millis(50), ..Limits::default() });
    let mut raw = raw::machine(&world, &machine.seed);
    let path = format!("/api/v1/repositories/~/sessions/{session}/blocks");
    write!(raw, "POST {path} HTTP/1.1\r\nContent-Length: 1000\r\n{CLOSE}half").unwrap();
    raw.flush().unwrap();
    let answer = raw::read_to_end(&mut raw);
    assert!(answer.is_empty() || status(&answer) == "400", "{answer}");
}

/// Requests of a machine that announce a put of 16 MiB, and send nothing of it.
fn announced(world: &World, machine: &Machine, count: usize) -> Vec<raw::Raw> {
    let session = session(&machine.connect());
    let path = format!("/api/v1/repositories/~/sessions/{session}/blocks");
    let announce = |_| {
        let mut raw = raw::machine(world, &machine.seed);
        write!(raw, "POST {path} HTTP/1.1\r\nContent-Length: 16777216\r\n{CLOSE}").unwrap();
        raw.flush().unwrap();
        raw
    };
    let waiting = (0..count).map(announce).collect();
    // They have what they wait for, as far as they get it.
    std::thread::sleep(Duration::from_millis(300));
    waiting
}

/// Does something that must not wait for anybody.
#[track_caller]
fn at_once<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, doing) = channel();
    std::thread::spawn(move || done.send(work()));
    let done = doing.recv_timeout(Duration::from_secs(20));
    done.unwrap_or_else(|_| panic!("it waits for others"))
}

#[test]
fn who_announces_bodies_and_does_not_send_them_leaves_room_for_others() {
    let world = World::new();
    let machines: Vec<_> = (1..4).map(|number| world.machine(number)).collect();
    let [greedy, also_greedy, honest] = &machines[..] else { unreachable!() };
    let object = ObjectId::from_bytes([7; 32]);
    let block = honest.forge().chunks_of_bytes(&[object], 500_000);
    let repository = Arc::new(honest.connect());
    let session = session(&*repository);
    let put = || {
        let (repository, block) = (Arc::clone(&repository), block.clone());
        move || repository.put_blocks(&session, &[block]).unwrap()
    };
    let _announced = announced(&world, greedy, 8);
    at_once(put());
    // Two take all of it; what is small, and what is fetched, needs none of it.
    let _also_announced = announced(&world, also_greedy, 8);
    let reader = Arc::clone(&repository);
    let fetched = at_once(move || {
        reader.describe().unwrap();
        assert_eq!(reader.missing(&session, &[object]).unwrap(), [false]);
        reader.fetch_objects(&session, &[object], 0).unwrap().blocks
    });
    assert_eq!(fetched, [block]);
}
