//! Records that lie, and keys that are not the repository's.

use holdall_format::{MachineId, RecordHash, RecordHead, RecordKind, RepositoryId};
use holdall_protocol::contract::{Forge, TestKey};

use super::stage::{OWN, node, nothing, request, with};
use super::{Asked, Row, Stage, by_machine, hold};

pub(super) const ROWS: &[Row] = &[
    by_machine(
        "a record that follows none",
        |stage| stage.commit(&stage.forge().record(RecordKind::Checkpoint, node(), None)),
        "409",
        "head-moved",
    ),
    by_machine(
        "a record that follows another one",
        |stage| {
            let previous = Some((RecordHash::from_bytes([5; 32]), 1));
            stage.commit(&stage.forge().record(RecordKind::Snapshot, node(), previous))
        },
        "409",
        "head-moved",
    ),
    by_machine(
        "a number that skips one",
        |stage| changed(stage, |head| head.sequence += 1),
        "400",
        "refused",
    ),
    by_machine(
        "a number that was there",
        |stage| changed(stage, |head| head.sequence -= 1),
        "400",
        "refused",
    ),
    by_machine(
        "the highest number that there is",
        |stage| changed(stage, |head| head.sequence = u64::MAX),
        "400",
        "refused",
    ),
    by_machine(
        "another machine's id",
        |stage| {
            let victim = stage.victim.id();
            let head = next(stage);
            stage.commit(&stage.forge().sign(RecordHead { machine: victim, ..head }))
        },
        "403",
        "not-allowed",
    ),
    by_machine(
        "a machine that is nobody",
        |stage| changed(stage, |head| head.machine = MachineId::from_bytes([8; 16])),
        "403",
        "not-allowed",
    ),
    by_machine(
        "another repository's id",
        |stage| changed(stage, |head| head.repository = RepositoryId::from_bytes([9; 16])),
        "400",
        "refused",
    ),
    by_machine(
        "signed by another key",
        |stage| {
            let stranger = TestKey::from_seed(&[77; 32]);
            let head = RecordHead { key: stranger.public(), ..next(stage) };
            stage.commit(&Forge::sign_with(&stranger, head))
        },
        "403",
        "not-allowed",
    ),
    by_machine(
        "signed by another key in one's own name",
        |stage| stage.commit(&Forge::sign_with(&TestKey::from_seed(&[77; 32]), next(stage))),
        "400",
        "refused",
    ),
    by_machine(
        "a signature with a changed bit",
        |stage| {
            let record = stage.forge().sign(next(stage));
            stage.commit(&with(&record, record.len() - 130, &[0x55]))
        },
        "400",
        "refused",
    ),
    by_machine(
        "a sealed half of another hash",
        |stage| {
            let record = stage.forge().sign(next(stage));
            stage.commit(&with(&record, record.len() - 1, &[0]))
        },
        "400",
        "refused",
    ),
    by_machine(
        "a kind that is none",
        |stage| {
            let record = stage.forge().sign(next(stage));
            stage.commit(&with(&record, 9, &[200]))
        },
        "400",
        "refused",
    ),
    by_machine(
        "a version to come",
        |stage| {
            let record = stage.forge().sign(next(stage));
            stage.commit(&with(&record, 8, &[200]))
        },
        "400",
        "refused",
    ),
    by_machine(
        "the victim's record replayed",
        |stage| stage.commit(&stage.victims_newest),
        "400",
        "refused",
    ),
    by_machine(
        "a snapshot of what is not there",
        |stage| {
            // Not an error but an answer: what is missing. Nothing is published.
            stage.commit(&stage.forge().record(RecordKind::Snapshot, nothing(), stage.head()))
        },
        "200",
        "\u{1}\u{3}\u{3}\u{3}",
    ),
    by_machine(
        "a snapshot whose root is a chunk",
        |stage| {
            stage.commit(&stage.forge().record(
                RecordKind::Snapshot,
                super::stage::chunk(),
                stage.head(),
            ))
        },
        "400",
        "",
    ),
    by_machine(
        "tags for a snapshot that is not there",
        |stage| {
            stage.commit(&stage.forge().amendment(
                RecordHash::from_bytes([4; 32]),
                node(),
                stage.head(),
            ))
        },
        "400",
        "refused",
    ),
    by_machine(
        "tags for another's snapshot",
        |stage| {
            let theirs = holdall_format::Record::decode(&stage.victims_newest).unwrap().hash();
            stage.commit(&stage.forge().amendment(theirs, node(), stage.head()))
        },
        "400",
        "refused",
    ),
    by_machine(
        "tags for a snapshot of another root",
        |stage| {
            let (own, _) = stage.head().unwrap();
            stage.commit(&stage.forge().amendment(own, nothing(), stage.head()))
        },
        "400",
        "refused",
    ),
    by_machine(
        "a record that is cut",
        |stage| {
            let record = stage.forge().sign(next(stage));
            stage.commit(&record[..record.len() / 2])
        },
        "400",
        "refused",
    ),
    by_machine("an empty record", |stage| stage.commit(b""), "400", "refused"),
    by_machine(
        "a record whose head is longer than all of it",
        |stage| {
            let record = stage.forge().sign(next(stage));
            stage.commit(&with(&record, 0, &u32::MAX.to_le_bytes()))
        },
        "400",
        "refused",
    ),
    by_machine(
        "a record longer than any",
        |stage| stage.commit(&vec![7; (4 << 20) + 1]),
        "413",
        "too-large",
    ),
    by_machine(
        "keys of a generation that is there",
        |stage| wrappings(&stage.forge().wrappings(1)),
        "400",
        "refused",
    ),
    by_machine(
        "keys that another owner signed",
        |stage| wrappings(&stage.victim.forge().wrappings(2)),
        "400",
        "refused",
    ),
    by_machine(
        "keys with a changed bit",
        |stage| {
            let set = stage.forge().wrappings(2);
            wrappings(&with(&set, set.len() - 1, &[0x77]))
        },
        "400",
        "refused",
    ),
    by_machine(
        "keys that name somebody else's recovery kit",
        |stage| {
            let stranger = crate::world::identity(&crate::world::recovery_seed(99)).public();
            wrappings(&stage.forge().wrappings_for_unproven(2, stranger))
        },
        "400",
        "refused",
    ),
    by_machine("no keys at all", |_| wrappings(b""), "400", "refused"),
    by_machine("keys longer than any", |_| wrappings(&vec![1; 3 << 20]), "413", "too-large"),
    by_machine(
        "a repository made a second time",
        |stage| {
            let forge = stage.forge();
            request("PUT", OWN, &super::stage::framed(&[forge.config(), forge.wrappings(1)]))
        },
        "409",
        "already-exists",
    ),
];

#[test]
fn records_and_keys_that_lie() {
    hold(ROWS);
}

/// The head of an honest next record.
fn next(stage: &Stage) -> RecordHead {
    stage.forge().record_head(RecordKind::Snapshot, node(), stage.head())
}

/// A commit of the next record with something else in its head, signed well.
fn changed(stage: &Stage, change: fn(&mut RecordHead)) -> Asked {
    let mut head = next(stage);
    change(&mut head);
    stage.commit(&stage.forge().sign(head))
}

fn wrappings(set: &[u8]) -> Asked {
    request("PUT", &format!("{OWN}/wrappings"), set)
}
