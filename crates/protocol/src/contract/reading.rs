//! Listing records, reading all blocks, and scrubbing.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::ContractWorld;
use super::cases;
use super::fixture::{Fixture, stored};
use super::forge::{id, ids};
use crate::{FETCH_TARGET_BYTES, ListedRecord, RecordQuery, RecordsDigest, RepositoryError};

cases![
    records_are_listed_in_order_and_in_pages,
    records_that_are_known_are_not_listed_again,
    every_block_is_read_with_every_copy,
    what_is_put_while_blocks_are_read_repeats_nothing,
    a_scrub_of_a_sound_repository_finds_nothing_wrong,
    a_scrub_without_a_repository_says_so,
];

fn records_are_listed_in_order_and_in_pages(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let mut head = None;
    for number in 0..5 {
        head = fixture.snapshot(&format!("root {number}"), &[id("chunk")], head);
    }
    let fixture = fixture.restarted();
    let all = fixture.all_records();
    let sequences: Vec<u64> = all.iter().map(|stored| stored.record.head.sequence).collect();
    assert_eq!(sequences, [1, 2, 3, 4, 5]);
    assert!(all.is_sorted_by_key(|stored| stored.receipt.log_position));

    let mut paged = Vec::new();
    let mut query = RecordQuery { limit: 2, ..RecordQuery::default() };
    loop {
        let page = fixture.repository.records(&query).unwrap();
        assert!(page.len() <= 2);
        let Some(last) = page.last() else { break };
        query.after_position = last.position;
        paged.extend(page.iter().map(stored));
    }
    assert_eq!(paged, all);
}

fn records_that_are_known_are_not_listed_again(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let mut head = None;
    for number in 0..5 {
        head = fixture.snapshot(&format!("root {number}"), &[id("chunk")], head);
    }
    let all = RecordQuery { limit: 100, ..RecordQuery::default() };
    let all = fixture.repository.records(&all).unwrap();
    let after = |known: &[ListedRecord], position: u64| {
        let known = Some(RecordsDigest::of(known));
        fixture.repository.records(&RecordQuery { after_position: position, limit: 100, known })
    };
    for (at, record) in all.iter().enumerate() {
        let (known, behind) = all.split_at(at + 1);
        assert_eq!(after(known, record.position).unwrap(), behind);
        let others = [after(&known[1..], record.position), after(known, record.position - 1)];
        for other in others {
            assert!(matches!(other, Err(RepositoryError::OtherRecords)), "{other:?}");
        }
    }
    assert_eq!(after(&[], 0).unwrap(), all);
}

/// Reads all blocks, as a verifying client does.
fn read_all(fixture: &Fixture<'_>) -> Vec<Bytes> {
    let session = fixture.session();
    let mut blocks = Vec::new();
    let mut cursor = Some(0);
    while let Some(at) = cursor {
        let page = fixture.repository.read_blocks(&session, at).unwrap();
        assert_eq!(page.damaged, []);
        let bytes: usize = page.blocks.iter().map(Bytes::len).sum();
        let last = page.blocks.last().map_or(0, Bytes::len);
        assert!(bytes - last <= FETCH_TARGET_BYTES, "{bytes} bytes in one page");
        blocks.extend(page.blocks);
        cursor = page.next;
    }
    blocks
}

fn every_block_is_read_with_every_copy(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    assert!(read_all(&fixture).is_empty());
    let session = fixture.session();
    let mut put = BTreeSet::new();
    for number in 0..12 {
        let chunk = fixture.forge.chunks_of_bytes(&[id("chunk"), id([number])], 1 << 20);
        let node = fixture.forge.nodes(&[(id([number, 1]), &[id("chunk")])]);
        fixture.put(&session, &[chunk.clone(), node.clone()]);
        put.extend([chunk, node]);
    }
    let read = read_all(&fixture);
    assert_eq!(read.len(), put.len());
    assert_eq!(read.into_iter().collect::<BTreeSet<_>>(), put);
    let fixture = fixture.restarted();
    assert_eq!(read_all(&fixture).into_iter().collect::<BTreeSet<_>>(), put);
}

fn what_is_put_while_blocks_are_read_repeats_nothing(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    for chunk in ids("before", 12) {
        fixture.put(&session, &[fixture.forge.chunks_of_bytes(&[chunk], 1 << 20)]);
    }
    let first = fixture.repository.read_blocks(&session, 0).unwrap();
    for chunk in ids("between", 60) {
        fixture.put(&session, &[fixture.forge.chunks_of_bytes(&[chunk], 1 << 20)]);
    }
    let mut read = first.blocks;
    let mut cursor = first.next;
    while let Some(at) = cursor {
        let page = fixture.repository.read_blocks(&session, at).unwrap();
        read.extend(page.blocks);
        cursor = page.next;
    }
    assert_eq!(read.len(), 72);
    assert_eq!(read.into_iter().collect::<BTreeSet<_>>().len(), 72);
}

fn a_scrub_of_a_sound_repository_finds_nothing_wrong(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let head = fixture.snapshot("first", &ids("chunk", 10), None);
    fixture.snapshot("second", &ids("chunk", 11), head);
    let mut last = None;
    let report = fixture.repository.scrub(&mut |progress| last = Some(progress)).unwrap();
    assert_eq!(report.damaged, []);
    assert_eq!((report.blocks, report.snapshots), (4, 2));
    assert_eq!(report.objects, 10 + 1 + 11 + 1);
    assert!(report.bytes > 0);
    let last = last.expect("progress is told at least once");
    assert_eq!(last.bytes_done, last.bytes_total);
}

fn a_scrub_without_a_repository_says_so(world: &mut dyn ContractWorld) {
    let answer = world.repository().scrub(&mut |_| {});
    assert!(matches!(answer, Err(RepositoryError::NoRepository { .. })), "got {answer:?}");
}
