//! Blocks and questions that break the format, or a rule.

use bytes::Bytes;
use holdall_format::{BlockKind, RecordKind, TableEntry};
use holdall_protocol::wire::encode_ids;
use holdall_protocol::{CommitAnswer, Repository};

use super::stage::{OWN, chunk, node, nothing, request, with};
use super::{Asked, Row, Stage, by_machine, hold};
use crate::world::session;

pub(super) const ROWS: &[Row] = &[
    by_machine(
        "another repository's block",
        |stage| stage.put(&[stage.victim.forge().chunks(&[nothing()])]),
        "400",
        "refused",
    ),
    by_machine(
        "proofs of more blocks than may be asked for",
        |stage| stage.in_session("proofs", &[7; 33 * 68]),
        "413",
        "too-large",
    ),
    by_machine("half a probe", |stage| stage.in_session("proofs", &[7; 34]), "400", "refused"),
    by_machine(
        "a record's block",
        |stage| stage.put(&[stage.forge().block(BlockKind::Record, vec![], 64)]),
        "400",
        "refused",
    ),
    by_machine(
        "other references for a node that was committed",
        |stage| stage.put(&[stage.forge().nodes(&[(node(), &[nothing()])])]),
        "400",
        "refused",
    ),
    by_machine(
        "no references for a node that was committed",
        |stage| stage.put(&[stage.forge().nodes(&[(node(), &[])])]),
        "400",
        "refused",
    ),
    by_machine("a table of another hash", |stage| put_with(stage, 140, &[9]), "400", "refused"),
    by_machine("another magic", |stage| put_with(stage, 0, b"XXXX"), "400", "refused"),
    by_machine("a block of a version to come", |stage| put_with(stage, 4, &[99]), "400", "refused"),
    by_machine("a suite that is none", |stage| put_with(stage, 5, &[99]), "400", "refused"),
    by_machine("a kind of block that is none", |stage| put_with(stage, 6, &[99]), "400", "refused"),
    by_machine(
        "a table longer than the block",
        |stage| put_with(stage, 28, &u32::MAX.to_le_bytes()),
        "400",
        "refused",
    ),
    by_machine(
        "a payload longer than the block",
        |stage| put_with(stage, 32, &u32::MAX.to_le_bytes()),
        "400",
        "refused",
    ),
    by_machine("a payload of nothing", |stage| put_with(stage, 32, &[0; 4]), "400", "refused"),
    by_machine(
        "slots for keys that are not there yet",
        |stage| put_with(stage, 36, &[1]),
        "400",
        "refused",
    ),
    by_machine(
        "a count of objects beyond the table",
        |stage| {
            let block = stage.forge().chunks(&[nothing()]);
            let table_bytes = u32::from_le_bytes(block[28..32].try_into().unwrap()) as usize;
            let mut table = block[136..136 + table_bytes].to_vec();
            table[..4].copy_from_slice(&u32::MAX.to_le_bytes());
            let hash = *blake3::hash(&table).as_bytes();
            stage.put(&[with(&with(&block, 136, &table), 72, &hash)])
        },
        "400",
        "refused",
    ),
    by_machine(
        "a chunk with references",
        |stage| {
            let entry = TableEntry { id: nothing(), refs: vec![chunk()] };
            stage.put(
                &[stage.forge().block(BlockKind::Nodes, vec![entry], 64)]
                    .map(|block| as_chunks(&block)),
            )
        },
        "400",
        "refused",
    ),
    by_machine(
        "a good block in front of a bad one",
        |stage| stage.put(&[stage.forge().chunks(&[nothing()]), Bytes::from_static(b"HBlk")]),
        "400",
        "refused",
    ),
    by_machine(
        "a frame that ends early",
        |stage| stage.in_session("blocks", &[9, 0, 0, 0, 1]),
        "400",
        "refused",
    ),
    by_machine(
        "a frame of gigabytes",
        |stage| stage.in_session("blocks", &[0xff; 8]),
        "400",
        "refused",
    ),
    by_machine("an empty frame", |stage| stage.in_session("blocks", &[0; 4]), "400", "refused"),
    by_machine(
        "more frames than there may be",
        |stage| stage.in_session("blocks", &vec![0; 4 * 16_385]),
        "400",
        "refused",
    ),
    by_machine(
        "more ids than there may be",
        |stage| stage.in_session("missing", &vec![0; 32 * 16_385]),
        "413",
        "too-large",
    ),
    by_machine("half an id", |stage| stage.in_session("missing", &[0; 31]), "400", "refused"),
    by_machine(
        "half an id fetched",
        |stage| stage.in_session("fetch?copy=0", &[0; 33]),
        "400",
        "refused",
    ),
    by_machine(
        "what is not there",
        |stage| stage.in_session("fetch?copy=0", &encode_ids(&[nothing()])),
        "404",
        "missing-objects",
    ),
    by_machine(
        "a copy that is not there",
        |stage| stage.in_session("fetch?copy=4294967295", &encode_ids(&[chunk()])),
        "404",
        "missing-objects",
    ),
    by_machine(
        "a copy beyond all numbers",
        |stage| stage.in_session("fetch?copy=99999999999", &encode_ids(&[chunk()])),
        "404",
        "no-such-route",
    ),
    by_machine(
        "a copy below nothing",
        |stage| stage.in_session("fetch?copy=-1", &encode_ids(&[chunk()])),
        "404",
        "no-such-route",
    ),
    by_machine(
        "a fetch with no copy",
        |stage| stage.in_session("fetch", &encode_ids(&[chunk()])),
        "404",
        "no-such-route",
    ),
    by_machine(
        "a count of records below nothing",
        |_| request("GET", &format!("{OWN}/records?after=0&limit=-1"), b""),
        "404",
        "no-such-route",
    ),
    by_machine(
        "a position of records beyond all numbers",
        |_| request("GET", &format!("{OWN}/records?after=99999999999999999999&limit=1"), b""),
        "404",
        "no-such-route",
    ),
    by_machine(
        "records that it never had",
        |_| {
            request("GET", &format!("{OWN}/records?after=9&limit=1&known={}", "ab".repeat(32)), b"")
        },
        "409",
        "other-records",
    ),
    by_machine(
        "a question in another order",
        |_| request("GET", &format!("{OWN}/records?limit=1&after=0"), b""),
        "404",
        "no-such-route",
    ),
    by_machine(
        "a session for something else",
        |_| ask_session(br#"{"purpose":"delete"}"#),
        "400",
        "refused",
    ),
    by_machine(
        "a session upon a record that is none",
        |_| ask_session(br#"{"purpose":"backup","parents":["zz"]}"#),
        "400",
        "refused",
    ),
];

#[test]
fn blocks_and_questions_that_break_a_rule() {
    hold(ROWS);
}

/// Nobody without keys can tell it from another one, so it is taken; whoever walks it comes to an end.
#[test]
fn a_node_that_refers_to_itself() {
    let stage = Stage::new();
    let repository = stage.machine.connect();
    let (forge, own) = (stage.forge(), session(&repository));
    repository.put_blocks(&own, &[forge.nodes(&[(nothing(), &[nothing()])])]).unwrap();
    let record = forge.record(RecordKind::Snapshot, nothing(), stage.head());
    assert!(matches!(repository.commit(&own, &record), Ok(CommitAnswer::Committed(_))));
    let report = repository.scrub(&mut |_| {}).unwrap();
    assert_eq!((report.damaged, report.snapshots), (vec![], 2));
    stage.assert_serves_others("a node that refers to itself");
}

/// A put of a block with other bytes at that place.
fn put_with(stage: &Stage, at: usize, by: &[u8]) -> Asked {
    let block = stage.forge().chunks(&[nothing()]);
    stage.put(&[with(&block, at, by)])
}

/// The same block as one of chunks.
fn as_chunks(block: &Bytes) -> Bytes {
    with(block, 6, &[2])
}

fn ask_session(body: &[u8]) -> Asked {
    request("POST", &format!("{OWN}/sessions"), body)
}
