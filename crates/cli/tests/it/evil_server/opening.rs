//! Lies about what the repository is, and in answers that are JSON.

use bytes::Bytes;
use holdall_protocol::Description;
use holdall_protocol::wire::{decode_description, encode_description};

use super::stage::Stage;
use super::{LIST, Lie, RESTORE, Reply, Row, at, hold, refuses, says};

pub(super) const ROWS: &[Row] = &[
    row(
        "another's repository as a whole",
        |stage| {
            let theirs = stage.description(&stage.other);
            at("describe", move |_, _| Reply::Answer(theirs.clone()))
        },
        20,
        "another repository lies under that name",
    ),
    row(
        "another repository's wrappings",
        |stage| {
            let theirs = described(&stage.description(&stage.other).body);
            described_as(move |ours| Description { wrappings: theirs.wrappings.clone(), ..ours })
        },
        20,
        "another repository lies under that name",
    ),
    row(
        "another repository's configuration",
        |stage| {
            let theirs = described(&stage.description(&stage.other).body);
            described_as(move |ours| Description { config: theirs.config.clone(), ..ours })
        },
        20,
        "configuration was swapped",
    ),
    row(
        "a configuration with a changed bit",
        |_| described_as(|ours| Description { config: flipped(&ours.config), ..ours }),
        20,
        "repository configuration",
    ),
    row(
        "wrappings with a changed bit",
        |_| described_as(|ours| Description { wrappings: flipped(&ours.wrappings), ..ours }),
        20,
        "damaged",
    ),
    row(
        "no wrappings",
        |_| described_as(|ours| Description { wrappings: Bytes::new(), ..ours }),
        20,
        "damaged",
    ),
    row(
        "another signer of its receipts",
        |stage| {
            let key = described(&stage.description(&stage.desk).body).machine;
            let mut signer = [7; 32];
            signer[..16].copy_from_slice(key.as_bytes());
            let signer = holdall_format::PublicKey::from_bytes(signer);
            described_as(move |ours| Description { signer, ..ours })
        },
        20,
        "signed by another key than its own",
    ),
    row(
        "a description of too many parts",
        |_| {
            says("describe", |mut body| {
                body.extend_from_slice(&[0; 8]);
                body
            })
        },
        1,
        "answer is not valid",
    ),
    row(
        "a description that ends inside a part",
        |_| {
            says("describe", |mut body| {
                body.truncate(body.len() / 2);
                body
            })
        },
        1,
        "answer is not valid",
    ),
    row("a part of gigabytes", |_| says("describe", |_| vec![0xff; 64]), 1, "answer is not valid"),
    restoring("a session in garbage", |_| says("sessions", |_| b"\x00\x01{".to_vec())),
    restoring("a session in an empty body", |_| says("sessions", |_| Vec::new())),
    restoring("a session in JSON as deep as an answer may be long", |_| {
        says("sessions", |_| vec![b'['; 60_000])
    }),
    restoring("a session that is not UTF-8", |_| {
        says("sessions", |_| b"{\"session\":\"\xff\xfe\"}".to_vec())
    }),
    restoring("a session's id of another length", |_| {
        says("sessions", |_| br#"{"session":"00","head":null,"sequence":0}"#.to_vec())
    }),
    restoring("a session's number beyond all numbers", |_| {
        says("sessions", |body| {
            let text = String::from_utf8(body).unwrap();
            text.replace("\"sequence\":", "\"sequence\":99999999999999999999").into_bytes()
        })
    }),
    restoring("a session in more JSON than it may be", |_| {
        says("sessions", |body| [&[b' '; 70_000][..], &body].concat())
    }),
    restoring("a refusal as if all were well", |_| {
        says("sessions", |_| br#"{"error":"not-allowed","reason":"no"}"#.to_vec())
    }),
    row(
        "not allowed",
        |_| {
            refuses(
                "list",
                403,
                r#"{"error":"not-allowed","message":"","reason":"the moon is full"}"#,
            )
        },
        13,
        "the moon is full",
    ),
    row(
        "never heard of this machine",
        |_| refuses("describe", 401, r#"{"error":"unknown-machine","message":""}"#),
        13,
        "does not know this machine",
    ),
    row(
        "no such repository",
        |_| refuses("describe", 404, r#"{"error":"no-repository","message":"","place":"/etc"}"#),
        10,
        "no repository at https://",
    ),
    row(
        "another's place in a refusal",
        |_| {
            refuses(
                "describe",
                404,
                r#"{"error":"no-repository","message":"","place":"\u001b[2J"}"#,
            )
        },
        10,
        "no repository at https://",
    ),
    row(
        "damage that is none",
        |_| {
            refuses(
                "list",
                500,
                r#"{"error":"damaged","message":"","what":"it","reason":"so it says"}"#,
            )
        },
        20,
        "so it says",
    ),
    row(
        "an error of no known kind",
        |_| refuses("list", 500, r#"{"error":"tired","message":"x"}"#),
        1,
        "error",
    ),
    row("an error that is no JSON", |_| refuses("list", 500, "<html>"), 1, "error"),
    row(
        "an error longer than any",
        |_| refuses("list", 500, vec![b'x'; 300 << 10]),
        1,
        "answer is not valid",
    ),
    row("a status that moves elsewhere", |_| refuses("list", 301, ""), 1, "error"),
    row("a teapot", |_| refuses("list", 418, "short and stout"), 1, "error"),
    Row {
        name: "limits of nothing, and beyond all numbers",
        lie: |_| {
            says("usage", |_| {
                br#"{"stored_bytes":18446744073709551615,"packs":18446744073709551615,"blocks":18446744073709551615,"objects":18446744073709551615,"records":18446744073709551615,"quota_bytes":0}"#.to_vec()
            })
        },
        command: "stats",
        exit: 0,
        says: "",
    },
];

#[test]
fn lies_about_what_the_repository_is_and_in_json() {
    hold(ROWS);
}

const fn row(name: &'static str, lie: fn(&Stage) -> Lie, exit: i32, says: &'static str) -> Row {
    Row { name, lie, command: LIST, exit, says }
}

const fn restoring(name: &'static str, lie: fn(&Stage) -> Lie) -> Row {
    Row { name, lie, command: RESTORE, exit: 1, says: "answer is not valid" }
}

fn described(body: &[u8]) -> Description {
    decode_description(&Bytes::copy_from_slice(body)).unwrap()
}

fn described_as(change: impl Fn(Description) -> Description + Send + Sync + 'static) -> Lie {
    says("describe", move |body| encode_description(&change(described(&body))).concat().to_vec())
}

fn flipped(bytes: &Bytes) -> Bytes {
    let mut bytes = bytes.to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    bytes.into()
}
