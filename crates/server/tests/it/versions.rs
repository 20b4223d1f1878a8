//! Clients that are older or newer than this server.

use holdall_protocol::tls;

use crate::raw::{self, exchange};
use crate::world::World;

fn post(path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

#[test]
fn what_a_newer_client_says_more_is_left_out() {
    let world = World::new();
    let machine = world.machine(1);
    let ask = |path: &str, body: &str| {
        exchange(&mut raw::machine(&world, &machine.seed), &post(path, body)).unwrap()
    };
    let sessions = "/api/v1/repositories/~/sessions";
    let opened = ask(sessions, r#"{"purpose":"read","of-tomorrow":{"nested":[1]}}"#);
    assert!(opened.starts_with("HTTP/1.1 200"), "{opened}");
    let unknown = ask("/api/v1/repositories/~/of-tomorrow", "{}");
    assert!(unknown.starts_with("HTTP/1.1 404") && unknown.contains("no-such-route"), "{unknown}");
    let later = ask("/api/v2/repositories/~/sessions", "{}");
    assert!(later.starts_with("HTTP/1.1 404"), "{later}");
}

#[test]
fn a_newer_client_speaks_the_newest_protocol_that_both_know_or_is_refused() {
    let world = World::new();
    let machine = world.machine(1);
    let speaking = |protocols: &[&[u8]]| {
        let mut config = tls::client_config(&machine.seed, world.server().identity()).unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let mut raw = raw::connect(&world, config);
        let answer =
            exchange(&mut raw, &post("/api/v1/repositories/~/sessions", r#"{"purpose":"read"}"#));
        (answer, raw.conn.alpn_protocol().map(<[u8]>::to_vec))
    };
    let (answer, protocol) = speaking(&[b"holdall/2", b"holdall/1"]);
    assert!(answer.unwrap().starts_with("HTTP/1.1 200"));
    assert_eq!(protocol.as_deref(), Some(tls::ALPN));
    let (answer, protocol) = speaking(&[b"holdall/2"]);
    let refused = answer.unwrap_err().to_string();
    assert!(refused.contains("NoApplicationProtocol"), "{refused}");
    assert_eq!(protocol, None);
    holdall_protocol::Repository::usage(&machine.connect()).unwrap();
}
