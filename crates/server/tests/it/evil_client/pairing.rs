//! Ways in without an invite, or with one that is not good.

use std::time::Duration;

use holdall_protocol::pair;
use holdall_protocol::wire::{ConfirmRequest, ExchangeRequest, PairRequest, is_repository_name};
use holdall_server::{InviteRequest, admin};

use super::stage::request;
use super::{Asked, Row, Who, by_stranger, hold};
use crate::world::{World, identity, quick};

pub(super) const ROWS: &[Row] = &[
    by_stranger(
        "a guessed invite",
        |_| paired(&PairRequest::new(&[0; 16], "guess").encode()),
        "403",
        "not-allowed",
    ),
    by_stranger(
        "an invite that was used",
        |stage| {
            let invite = stage.world.invite();
            pair(&invite, "guest", &identity(&[60; 32]), quick()).unwrap();
            paired(&PairRequest::new(&invite.secret, "guest").encode())
        },
        "403",
        "used",
    ),
    by_stranger(
        "an invite that ran out",
        |stage| {
            let invite = stage.world.invite();
            stage.world.clock.advance(Duration::from_secs(601));
            paired(&PairRequest::new(&invite.secret, "late").encode())
        },
        "403",
        "expired",
    ),
    by_stranger(
        "another's machine, without its key",
        |stage| {
            let again = holdall_protocol::FormerAccount {
                machine: stage.victim.id(),
                repository: stage.victim.paired.repository.clone(),
            };
            let invite = stage.world.invite();
            paired(&PairRequest::new(&invite.secret, "").again(&again).encode())
        },
        "403",
        "not-allowed",
    ),
    by_stranger("an invite in garbage", |_| paired(b"{{{{"), "400", "refused"),
    by_stranger(
        "an invite in JSON as deep as may be",
        |_| paired(&vec![b'['; 60_000]),
        "400",
        "refused",
    ),
    by_stranger(
        "an invite that is not UTF-8",
        |_| paired(b"{\"secret\":\"\xff\",\"name\":\"\"}"),
        "400",
        "refused",
    ),
    by_stranger("an invite longer than any", |_| paired(&vec![b' '; 70_000]), "413", "too-large"),
    by_stranger(
        "an invite asked for by GET",
        |_| request("GET", "/api/v1/pair", b""),
        "404",
        "no-such-route",
    ),
    by_stranger(
        "a short code where none is open",
        |_| coded("code", &ExchangeRequest::new([0x41; 33]).encode()),
        "403",
        "not-allowed",
    ),
    by_stranger(
        "a message that is no point of the curve",
        |stage| {
            let request = InviteRequest::default();
            stage.world.admin(&admin::MakeShortCode { request }).unwrap();
            coded("code", &ExchangeRequest::new([0xff; 33]).encode())
        },
        "403",
        "not-allowed",
    ),
    by_stranger(
        "a confirmation of what was not begun",
        |_| coded("code/confirm", &ConfirmRequest::new([0; 32]).encode()),
        "403",
        "not-allowed",
    ),
    by_stranger("a short code in garbage", |_| coded("code", b"{{{{"), "400", "refused"),
    by_stranger(
        "a short code of another length",
        |_| coded("code", b"{\"message\":\"aaaa\"}"),
        "400",
        "refused",
    ),
    by_stranger(
        "a confirmation longer than any",
        |_| coded("code/confirm", &vec![b' '; 70_000]),
        "413",
        "too-large",
    ),
    Row {
        name: "a short code without a key",
        who: Who::Nobody,
        asks: |_| coded("code", &ExchangeRequest::new([0x41; 33]).encode()),
        status: "404",
        says: "no-such-route",
    },
    Row {
        name: "an invite without a key",
        who: Who::Nobody,
        asks: |_| paired(&PairRequest::new(&[0; 16], "x").encode()),
        status: "404",
        says: "no-such-route",
    },
    Row {
        name: "a recovery kit that wants to be a machine",
        who: Who::Kit,
        asks: |stage| {
            let invite = stage.world.invite();
            paired(&PairRequest::new(&invite.secret, "kit").encode())
        },
        status: "403",
        says: "not-allowed",
    },
    Row {
        name: "a locked out machine with an invite for anybody",
        who: Who::Revoked,
        asks: |stage| {
            let invite = stage.world.invite();
            paired(&PairRequest::new(&invite.secret, "again").encode())
        },
        status: "403",
        says: "not-allowed",
    },
];

#[test]
fn ways_in_without_a_good_invite() {
    hold(ROWS);
}

fn paired(body: &[u8]) -> Asked {
    request("POST", "/api/v1/pair", body)
}

fn coded(path: &str, body: &[u8]) -> Asked {
    request("POST", &format!("/api/v1/pair/{path}"), body)
}

#[test]
fn whatever_a_machine_calls_itself_its_repository_has_a_plain_name() {
    let world = World::new();
    let long = "a".repeat(10_000);
    let names =
        ["../../identity.key", "\u{1b}[2J\0", "..", "~", &long, "server.redb", "\u{202e}txt"];
    for (number, name) in (10u8..).zip(names) {
        let paired = pair(&world.invite(), name, &identity(&[number; 32]), quick());
        let Ok(paired) = paired else { continue };
        assert!(is_repository_name(&paired.repository), "{name:?}: {}", paired.repository);
    }
    let outside: Vec<_> = std::fs::read_dir(world.folder.path().parent().unwrap())
        .unwrap()
        .filter_map(|entry| entry.ok().map(|entry| entry.file_name()))
        .filter(|name| name == "identity.key" || name == "identity-key")
        .collect();
    assert!(outside.is_empty(), "{outside:?}");
}
