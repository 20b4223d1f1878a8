//! Lies about which records there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdall_crypto::SigningKey;
use holdall_format::{
    Receipt, Record, RecordHead, SignedContext, StoredRecord, Tombstone, TombstoneReason,
};
use holdall_protocol::ListedRecord;
use holdall_protocol::wire::encode_records;

use super::stage::{Stage, records_in};
use super::{Answer, LIST, Lie, RESTORE, Reply, Row, at, hold, says};

const ROLLED_BACK: &str = "it was rolled back to an older state, or hides it";
const LEFT_OUT: &str = "cannot be seen: the repository lost or hides them";
const NOT_IN_ORDER: &str = "not in the order of the log";

pub(super) const ROWS: &[Row] = &[
    row("an older list", |stage| instead(stage.lists[0].clone()), ROLLED_BACK),
    restoring("an older list for a restore", |stage| instead(stage.lists[1].clone()), ROLLED_BACK),
    row("an empty list", |_| without_records(), ROLLED_BACK),
    row("the newest left out", |_| changed(|mut all| drop_at(&mut all, 2)), ROLLED_BACK),
    row("one in the middle left out", |_| changed(|mut all| drop_at(&mut all, 1)), LEFT_OUT),
    row("the oldest left out", |_| changed(|mut all| drop_at(&mut all, 0)), LEFT_OUT),
    row("all but the newest left out", |_| changed(|all| all[2..].to_vec()), LEFT_OUT),
    checking("one left out of a check", |_| changed(|mut all| drop_at(&mut all, 1)), LEFT_OUT),
    Row {
        name: "all in a first list for a check, and none in a second one",
        lie: |_| from_the_second_on(|_| Vec::new()),
        command: "check --verify all",
        exit: 0,
        says: "3 snapshots",
    },
    row("records in another order", |_| changed(reversed), NOT_IN_ORDER),
    row(
        "records in another order, with the positions of the right one",
        |_| changed(|all| with_positions_of(&all, &reversed(all.clone()))),
        "it is the record",
    ),
    row("a record twice", |_| changed(|all| [&all[..], &all[2..]].concat()), NOT_IN_ORDER),
    row(
        "a record again at the end",
        |_| changed(|all| [&all[..], &[at_position(&all[0], 99)]].concat()),
        "it is the record",
    ),
    row("a record with a changed bit", |_| changed(|all| with_bit(all, 2)), "is damaged"),
    row("a record that cannot be read", |_| changed(emptied), "its file cannot be read"),
    row("a record that is cut", |_| changed(cut), "is damaged"),
    row(
        "another machine's record of another repository",
        |stage| {
            let theirs = stage.records_of_other();
            appended(moved(stage, &theirs[0]))
        },
        "belongs to another repository",
    ),
    row("an old tree under a new record", |stage| appended(forged(stage, 0)), "forged"),
    restoring("an old tree as the latest", |stage| appended(forged(stage, 0)), "forged"),
    row(
        "a record whose sealed half nobody sealed",
        |stage| appended(signed(stage, record_of(stage, 2).head, vec![9; 300])),
        "is damaged",
    ),
    row("another's receipt", |_| changed(receipts_swapped), "is damaged"),
    row(
        "a receipt of another server",
        |stage| received_by(stage, [3; 32]),
        "signed by an unknown key",
    ),
    row(
        "a receipt with another time",
        |_| changed(|all| with_bit_from_end(all, 100)),
        "is damaged",
    ),
    row(
        "a receipt's signature changed",
        |_| changed(|all| with_bit_from_end(all, 1)),
        "is damaged",
    ),
    row(
        "rules that let the newest go",
        |stage| buried(stage, 2, TombstoneReason::Retention, stage.server_key()),
        "none lets the newest snapshot of a series go",
    ),
    row(
        "a tombstone of a stranger",
        |stage| {
            let stranger = SigningKey::from_seed(&[3; 32]);
            buried(stage, 1, TombstoneReason::Request, stranger)
        },
        "signed by an unknown key",
    ),
    row(
        "a tombstone for another record than the one that was there",
        |stage| {
            let (mut lie, all) = (tombstone(stage, 1, &stage.server_key()), stage.records());
            lie.position = all[2].position;
            changed(move |mut all| {
                all[2] = lie.clone();
                all
            })
        },
        "it is that of another record",
    ),
    row(
        "a tombstone of garbage",
        |_| {
            changed(|mut all| {
                all[2].stored = [&b"HTmb\x01\x02\0\0"[..], &[7; 300]].concat().into();
                all
            })
        },
        "is damaged",
    ),
    Row {
        name: "a record of gigabytes",
        lie: |_| says("list", |_| [&[0; 8][..], &u32::MAX.to_le_bytes()].concat()),
        command: LIST,
        exit: 1,
        says: "the server's answer is not valid",
    },
    Row {
        name: "a list without end and without records",
        lie: |_| {
            at("list", |asked, _| {
                let after = asked.path.split("after=").nth(1).unwrap();
                let after: u64 = after.split('&').next().unwrap().parse().unwrap();
                let body = after.saturating_add(1).to_le_bytes().to_vec();
                Reply::Answer(Answer { status: 200, body })
            })
        },
        command: LIST,
        exit: 1,
        says: "the server's answer is not valid",
    },
];

#[test]
fn lies_about_which_records_there_are() {
    hold(ROWS);
}

const fn row(name: &'static str, lie: fn(&Stage) -> Lie, says: &'static str) -> Row {
    Row { name, lie, command: LIST, exit: 20, says }
}

const fn restoring(name: &'static str, lie: fn(&Stage) -> Lie, says: &'static str) -> Row {
    Row { command: RESTORE, ..row(name, lie, says) }
}

const fn checking(name: &'static str, lie: fn(&Stage) -> Lie, says: &'static str) -> Row {
    Row { command: "check", ..row(name, lie, says) }
}

/// Lists what was listed once.
pub(super) fn instead(list: Answer) -> Lie {
    at("list", move |asked, answer| match asked.path.contains("after=0&") {
        true => Reply::Answer(list.clone()),
        false => Reply::Answer(Answer { body: encoded(&[]), ..answer }),
    })
}

/// Lists none.
pub(super) fn without_records() -> Lie {
    changed(|_| Vec::new())
}

/// Lists something else than there is, and nothing behind it.
fn changed(change: impl Fn(Vec<ListedRecord>) -> Vec<ListedRecord> + Send + Sync + 'static) -> Lie {
    at("list", move |asked, answer| {
        let body = match asked.path.contains("after=0&") {
            true => encoded(&change(records_in(&answer))),
            false => encoded(&[]),
        };
        Reply::Answer(Answer { body, ..answer })
    })
}

/// The same, but for the first time that all are listed.
fn from_the_second_on(
    change: impl Fn(Vec<ListedRecord>) -> Vec<ListedRecord> + Send + Sync + 'static,
) -> Lie {
    let (begun, lie) = (AtomicU64::new(0), changed(change));
    Arc::new(move |asked, ask| {
        let is_list = asked.verb() == "list";
        let begins = is_list && asked.path.contains("after=0&");
        let times = begun.fetch_add(begins.into(), Ordering::SeqCst) + u64::from(begins);
        if is_list && times > 1 { lie(asked, ask) } else { Reply::Answer(ask()) }
    })
}

fn encoded(records: &[ListedRecord]) -> Vec<u8> {
    encode_records(records, None).concat().to_vec()
}

fn drop_at(all: &mut Vec<ListedRecord>, at: usize) -> Vec<ListedRecord> {
    all.remove(at);
    all.clone()
}

fn reversed(all: Vec<ListedRecord>) -> Vec<ListedRecord> {
    all.into_iter().rev().collect()
}

fn at_position(record: &ListedRecord, position: u64) -> ListedRecord {
    ListedRecord { position, stored: record.stored.clone() }
}

fn with_positions_of(positions: &[ListedRecord], of: &[ListedRecord]) -> Vec<ListedRecord> {
    positions.iter().zip(of).map(|(place, record)| at_position(record, place.position)).collect()
}

fn with_bit(mut all: Vec<ListedRecord>, at: usize) -> Vec<ListedRecord> {
    let mut stored = all[at].stored.to_vec();
    let middle = stored.len() / 2;
    stored[middle] ^= 1;
    all[at].stored = stored.into();
    all
}

fn with_bit_from_end(mut all: Vec<ListedRecord>, from_end: usize) -> Vec<ListedRecord> {
    let mut stored = all[2].stored.to_vec();
    let place = stored.len() - from_end;
    stored[place] ^= 1;
    all[2].stored = stored.into();
    all
}

fn emptied(mut all: Vec<ListedRecord>) -> Vec<ListedRecord> {
    all[2].stored = Vec::new().into();
    all
}

fn cut(mut all: Vec<ListedRecord>) -> Vec<ListedRecord> {
    let half = all[2].stored.len() / 2;
    all[2].stored.truncate(half);
    all
}

/// Puts the second one's receipt behind the third one's record.
fn receipts_swapped(mut all: Vec<ListedRecord>) -> Vec<ListedRecord> {
    let receipt = StoredRecord::receipt_in(&all[1].stored).unwrap().to_vec();
    let stored = StoredRecord::decode(&all[2].stored).unwrap();
    all[2].stored = StoredRecord::join(&stored.record.encode(), &receipt).into();
    all
}

/// Lists one more, behind all others.
fn appended(record: ListedRecord) -> Lie {
    changed(move |mut all| {
        all.push(record.clone());
        all
    })
}

fn record_of(stage: &Stage, at: usize) -> Record {
    StoredRecord::decode(&stage.records()[at].stored).unwrap().record
}

/// A record that the server received just now, by its receipt.
fn received(stage: &Stage, record: Record, signer: &SigningKey) -> ListedRecord {
    let position = stage.records()[2].position + 1;
    let receipt = Receipt {
        clock_sure: true,
        repository: record.head.repository,
        record: record.hash(),
        log_position: position,
        received_ns: 1_900_000_000_000_000_000,
        signer: signer.public(),
    };
    let signature = signer.sign(SignedContext::Receipt, &receipt.signed_bytes());
    let stored = StoredRecord::new(record, receipt, &signature).encode().into();
    ListedRecord { position, stored }
}

/// The same record of another repository as if it had come here last.
fn moved(stage: &Stage, theirs: &ListedRecord) -> ListedRecord {
    let record = StoredRecord::decode(&theirs.stored).unwrap().record;
    received(stage, record, &stage.server_key())
}

/// What somebody can make who has no keys but a new one: a record that follows the newest one, has
/// its sealed half, and the tree of the one at `root_of`.
fn forged(stage: &Stage, root_of: usize) -> ListedRecord {
    let newest = record_of(stage, 2);
    let head = RecordHead {
        root: record_of(stage, root_of).head.root,
        sequence: newest.head.sequence + 1,
        previous: newest.hash(),
        ..newest.head.clone()
    };
    signed(stage, head, newest.sealed)
}

fn signed(stage: &Stage, mut head: RecordHead, sealed: Vec<u8>) -> ListedRecord {
    let key = SigningKey::from_seed(&[9; 32]);
    (head.key, head.sealed_hash) = (key.public(), *blake3::hash(&sealed).as_bytes());
    let signature = key.sign(SignedContext::Record, &head.signed_bytes());
    received(stage, Record::new(head, &signature, sealed), &stage.server_key())
}

/// The newest record, received by a server of that seed.
fn received_by(stage: &Stage, seed: [u8; 32]) -> Lie {
    let signer = SigningKey::from_seed(&seed);
    let theirs = received(stage, record_of(stage, 2), &signer);
    changed(move |mut all| {
        all[2] = theirs.clone();
        all
    })
}

fn tombstone_of(
    stage: &Stage,
    at: usize,
    reason: TombstoneReason,
    signer: &SigningKey,
) -> ListedRecord {
    let (listed, record) = (&stage.records()[at], record_of(stage, at));
    let tombstone = Tombstone {
        reason,
        record: record.hash(),
        log_position: listed.position,
        forgotten_ns: 1_900_000_000_000_000_000,
        signer: signer.public(),
        head_bytes: record.head_bytes,
    };
    let signature = signer.sign(SignedContext::Tombstone, &tombstone.signed_bytes());
    let stored = tombstone.encode(&signature).into();
    ListedRecord { position: listed.position, stored }
}

fn tombstone(stage: &Stage, at: usize, signer: &SigningKey) -> ListedRecord {
    tombstone_of(stage, at, TombstoneReason::Request, signer)
}

/// Says that one was let go.
pub(super) fn buried(stage: &Stage, at: usize, reason: TombstoneReason, signer: SigningKey) -> Lie {
    let lie = tombstone_of(stage, at, reason, &signer);
    changed(move |mut all| {
        all[at] = lie.clone();
        all
    })
}
