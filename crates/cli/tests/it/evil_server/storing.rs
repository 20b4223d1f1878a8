//! Lies to a machine that backs up.

use std::sync::Arc;

use holdall_crypto::SigningKey;
use holdall_format::{
    RECEIPT_BYTES, Receipt, Record, SignedContext, StoredRecord, TombstoneReason,
};

use super::listing::{buried, instead, without_records};
use super::stage::Stage;
use super::{Answer, BACKUP, LIST, Lie, RESTORE, Reply, Row, hold, honest, says};

pub(super) const ROWS: &[Row] = &[
    row(
        "it has what it lacks",
        |_| says("missing", |body| vec![0; body.len()]),
        20,
        "acknowledged",
    ),
    row(
        "it takes blocks and keeps none",
        |_| not_forwarding("blocks", |_| put_times("0.0")),
        20,
        "acknowledged",
    ),
    row(
        "it answers for more ids than were asked",
        |_| {
            says("missing", |mut body| {
                body.extend([0; 10]);
                body
            })
        },
        1,
        "answer is not valid",
    ),
    row(
        "it answers for fewer ids than were asked",
        |_| says("missing", |_| Vec::new()),
        1,
        "answer is not valid",
    ),
    row(
        "a receipt for another record",
        |stage| {
            let other = StoredRecord::decode(&stage.records()[0].stored).unwrap().receipt_bytes;
            let body = [&[0], &other[..]].concat();
            refuses_without("commit", 200, body)
        },
        20,
        "receipt",
    ),
    row(
        "a receipt for a wrong hash, well signed",
        |stage| {
            let key = stage.server_key();
            receipts(key, |receipt| {
                receipt.record = holdall_format::RecordHash::from_bytes([5; 32])
            })
        },
        20,
        "receipt",
    ),
    row(
        "a receipt of another repository",
        |stage| {
            let key = stage.server_key();
            receipts(key, |receipt| {
                receipt.repository = holdall_format::RepositoryId::from_bytes([5; 16])
            })
        },
        20,
        "receipt",
    ),
    row(
        "a receipt of another server for what is put",
        |_| receipts(SigningKey::from_seed(&[3; 32]), |_| ()),
        20,
        "receipt",
    ),
    row(
        "a receipt that nobody signed",
        |_| not_forwarding("commit", |_| [&[0][..], &[7; RECEIPT_BYTES]].concat()),
        20,
        "receipt",
    ),
    row(
        "a receipt that is too short",
        |_| not_forwarding("commit", |_| vec![0; 20]),
        1,
        "answer is not valid",
    ),
    row(
        "an answer to a commit that is none",
        |_| not_forwarding("commit", |_| vec![9]),
        1,
        "answer is not valid",
    ),
    row(
        "it lacks what it acknowledged",
        |_| not_forwarding("commit", |_| [&[1][..], &[6; 32]].concat()),
        20,
        "acknowledged",
    ),
    row(
        "it lacks more than there may be",
        |_| not_forwarding("commit", |_| [&[1][..], &[6; 32 * 16_385]].concat()),
        1,
        "answer is not valid",
    ),
    row(
        "the head moves each time",
        |_| refuses_without("commit", 409, r#"{"error":"head-moved","message":"","head":null}"#),
        1,
        "another record was committed in between",
    ),
    row(
        "a head that is nobody's",
        |_| {
            says("sessions", |body| {
                let text = String::from_utf8(body).unwrap();
                let at = text.find("\"head\":\"").unwrap() + 8;
                [&text.as_bytes()[..at], &[b'7'; 64], &text.as_bytes()[at + 64..]].concat()
            })
        },
        1,
        "another record was committed in between",
    ),
    row(
        "a sequence at the end of all numbers",
        |_| {
            says("sessions", |body| {
                let text = String::from_utf8(body).unwrap();
                let at = text.find("\"sequence\":").unwrap() + 11;
                format!("{}18446744073709551615}}", &text[..at]).into_bytes()
            })
        },
        20,
        "sequence",
    ),
    row(
        "no room",
        |_| {
            refuses_without(
                "blocks",
                507,
                r#"{"error":"no-room","message":"","place":"the attic"}"#,
            )
        },
        1,
        "the attic",
    ),
    row(
        "a quota of nothing",
        |_| {
            refuses_without(
                "blocks",
                403,
                r#"{"error":"not-allowed","message":"","reason":"over the quota of 0 B"}"#,
            )
        },
        13,
        "over the quota",
    ),
    row(
        "an error for ever",
        |_| {
            refuses_without(
                "blocks",
                500,
                r#"{"error":"io","message":"","what":"writing","reason":"x"}"#,
            )
        },
        1,
        "writing",
    ),
    row(
        "busy for ever",
        |_| refuses_without("blocks", 503, r#"{"error":"busy","message":""}"#),
        14,
        "busy",
    ),
    row(
        "too many requests for ever",
        |_| refuses_without("missing", 429, r#"{"error":"too-many-requests","message":""}"#),
        14,
        "busy",
    ),
    row(
        "a block is too large",
        |_| refuses_without("blocks", 413, r#"{"error":"too-large","message":"","limit_bytes":0}"#),
        1,
        "more than 0 bytes",
    ),
    row(
        "no such session, ever",
        |_| {
            let body =
                format!(r#"{{"error":"no-session","message":"","session":"{}"}}"#, "00".repeat(16));
            refuses_without("blocks", 404, body)
        },
        1,
        "session",
    ),
    row(
        "put times that are no numbers",
        |_| not_forwarding("blocks", |_| put_times("null")),
        1,
        "answer is not valid",
    ),
    row("a redirect of what is put", |_| refuses_without("blocks", 301, ""), 1, "error"),
    row(
        "the connection ends at each commit",
        |_| {
            Arc::new(|asked, ask| match asked.verb() {
                "commit" => Reply::Raw(Vec::new()),
                _ => Reply::Answer(ask()),
            })
        },
        14,
        "cannot be reached",
    ),
];

#[test]
fn lies_to_a_machine_that_backs_up() {
    // Something to store, each time.
    hold(ROWS);
}

#[test]
fn a_commit_that_was_acknowledged_and_not_kept_is_missed_from_then_on() {
    let stage = Stage::new();
    let key = stage.server_key();
    let kept = stage.run_under(receipts(key, |_| ()), BACKUP);
    assert_eq!(kept.code, Some(0), "nobody can know yet: {}", kept.stderr);
    for _ in 0..2 {
        let missed = stage.run(LIST);
        assert_eq!(missed.code, Some(20), "{}", missed.stderr);
        assert!(missed.stderr.contains("this machine has its receipt"), "{}", missed.stderr);
    }
    let again = stage.run(BACKUP);
    assert_eq!(again.code, Some(20), "it is told, and made all the same: {}", again.stderr);
    assert!(again.stderr.contains("this machine has its receipt"), "{}", again.stderr);
    assert_eq!(stage.run(LIST).code, Some(0));
}

#[test]
fn without_receipts_nobody_can_know_of_a_second_history_and_that_is_said() {
    let stage = Stage::new();
    // To this machine the third snapshot never was, as to one that was set back with the server.
    let older = stage.lists[1].clone();
    let state = stage.desk.path("config/state/receipts");
    std::fs::remove_dir_all(&state).unwrap();
    stage.drop_cache();
    let shown = stage.run_under(instead(older), LIST);
    assert_eq!(shown.code, Some(0), "without a receipt nobody can know: {}", shown.stderr);
    let told = "cannot prove that the newest snapshots are shown";
    assert!(shown.stderr.contains(told), "and that is said: {}", shown.stderr);
    for (lists, command) in [(1, RESTORE), (1, "check"), (0, LIST), (0, "check")] {
        let lie = if lists == 1 { instead(stage.lists[1].clone()) } else { without_records() };
        let shown = stage.run_under(lie, command);
        assert_eq!(shown.code, Some(0), "{command}: {}", shown.stderr);
        assert!(shown.stderr.contains(told), "{command}: {}", shown.stderr);
        let _ = std::fs::remove_dir_all(stage.target());
    }
    let hidden = buried(&stage, 2, TombstoneReason::Retention, stage.server_key());
    let shown = stage.run_under(hidden, LIST);
    assert_eq!(shown.code, Some(20), "rules that let the newest go: {}", shown.stderr);
    assert!(shown.stderr.contains("none lets the newest"), "{}", shown.stderr);
    let all = stage.run_under(honest(), LIST);
    assert_eq!(all.code, Some(0), "{}", all.stderr);
}

const fn row(name: &'static str, lie: fn(&Stage) -> Lie, exit: i32, says: &'static str) -> Row {
    Row { name, lie, command: BACKUP, exit, says }
}

/// Answers for the server, which is not asked.
fn not_forwarding(verb: &'static str, body: fn(&[u8]) -> Vec<u8>) -> Lie {
    Arc::new(move |asked, ask| {
        let answer = match asked.verb() == verb {
            true => Answer { status: 200, body: body(&asked.body) },
            false => ask(),
        };
        Reply::Answer(answer)
    })
}

/// The same with any status, and a body that is known before.
fn refuses_without(verb: &'static str, status: u16, body: impl Into<Vec<u8>>) -> Lie {
    let body = body.into();
    Arc::new(move |asked, ask| {
        let answer = match asked.verb() == verb {
            true => Answer { status, body: body.clone() },
            false => ask(),
        };
        Reply::Answer(answer)
    })
}

fn put_times(seconds: &str) -> Vec<u8> {
    let fields = ["receive", "queue", "cpu", "disk"];
    let fields = fields.map(|field| format!("\"{field}_seconds\":{seconds}"));
    format!("{{{}}}", fields.join(",")).into_bytes()
}

/// Acknowledges records with receipts of that key, and keeps none.
fn receipts(key: SigningKey, change: fn(&mut Receipt)) -> Lie {
    Arc::new(move |asked, ask| {
        if asked.verb() != "commit" {
            return Reply::Answer(ask());
        }
        let record = Record::decode(&asked.body).unwrap();
        let mut receipt = Receipt {
            clock_sure: true,
            repository: record.head.repository,
            record: record.hash(),
            log_position: 1000,
            received_ns: 1_900_000_000_000_000_000,
            signer: key.public(),
        };
        change(&mut receipt);
        let signature = key.sign(SignedContext::Receipt, &receipt.signed_bytes());
        let body = [&[0], &receipt.signed_bytes()[..], signature.as_bytes()].concat();
        Reply::Answer(Answer { status: 200, body })
    })
}
