//! Fetching blocks by the objects in them.

use std::collections::BTreeSet;

use bytes::Bytes;
use holdall_format::{Block, ObjectId, SessionId};

use super::ContractWorld;
use super::cases;
use super::fixture::{Fixture, assert_no_session};
use super::forge::{id, ids};
use crate::{FETCH_TARGET_BYTES, Fetched, RepositoryError, SessionPurpose};

cases![
    blocks_come_once_each_in_order_of_first_use,
    a_long_list_is_fetched_in_several_answers,
    an_answer_ends_before_what_is_missing,
    what_is_missing_is_named,
    copies_are_numbered_by_arrival,
    a_read_session_fetches_too,
    fetching_needs_an_open_session,
];

fn missing_of(answer: Result<Fetched, RepositoryError>) -> Vec<ObjectId> {
    match answer {
        Err(RepositoryError::MissingObjects { ids }) => ids,
        other => panic!("expected missing objects, got {other:?}"),
    }
}

fn blocks_come_once_each_in_order_of_first_use(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    let chunks = ids("chunk", 6);
    let blocks: Vec<_> = chunks.chunks(2).map(|pair| fixture.forge.chunks(pair)).collect();
    fixture.put(&session, &blocks);
    let order = [chunks[5], chunks[0], chunks[4], chunks[1], chunks[0]];
    let fetched = fixture.repository.fetch_objects(&session, &order, 0).unwrap().blocks;
    assert_eq!(fetched, [blocks[2].clone(), blocks[0].clone()]);
    assert!(fixture.repository.fetch_objects(&session, &[], 0).unwrap().blocks.is_empty());
}

fn a_long_list_is_fetched_in_several_answers(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    let chunks = ids("chunk", 24);
    for chunk in &chunks {
        fixture.put(&session, &[fixture.forge.chunks_of_bytes(&[*chunk], 1 << 20)]);
    }
    let mut wanted = chunks.clone();
    let mut answers = 0;
    while !wanted.is_empty() {
        let blocks = fixture.repository.fetch_objects(&session, &wanted, 0).unwrap().blocks;
        let bytes: usize = blocks.iter().map(Bytes::len).sum();
        let last = blocks.last().expect("every answer has a block").len();
        assert!(bytes - last <= FETCH_TARGET_BYTES, "{bytes} bytes in one answer");
        let got: BTreeSet<_> = blocks.iter().flat_map(objects_of).collect();
        let prefix = wanted.iter().take_while(|id| got.contains(id)).count();
        assert_eq!(prefix, blocks.len(), "the blocks hold a prefix of what was asked for");
        wanted.drain(..prefix);
        answers += 1;
    }
    assert!(answers > 1);
}

fn an_answer_ends_before_what_is_missing(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    let chunks = ids("chunk", 3);
    let block = fixture.forge.chunks(&chunks[..1]);
    fixture.put(&session, &[block.clone(), fixture.forge.chunks(&chunks[2..])]);
    let fetched = fixture.repository.fetch_objects(&session, &chunks, 0).unwrap().blocks;
    assert_eq!(fetched, [block]);
    let rest = fixture.repository.fetch_objects(&session, &chunks[1..], 0);
    assert_eq!(missing_of(rest), [chunks[1]]);
}

fn what_is_missing_is_named(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    let answer = fixture.repository.fetch_objects(&session, &[id("chunk")], 0);
    assert_eq!(missing_of(answer), [id("chunk")]);
}

fn copies_are_numbered_by_arrival(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    let chunk = id("chunk");
    let copies: Vec<_> = (0..3).map(|_| fixture.forge.chunks(&[chunk])).collect();
    for copy in &copies {
        fixture.put(&session, std::slice::from_ref(copy));
    }
    let check = |fixture: &Fixture<'_>| {
        for (number, copy) in (0..).zip(&copies) {
            let fetched =
                fixture.repository.fetch_objects(&session, &[chunk], number).unwrap().blocks;
            assert_eq!(fetched, std::slice::from_ref(copy), "copy {number}");
        }
        let none = fixture.repository.fetch_objects(&session, &[chunk], 3);
        assert_eq!(missing_of(none), [chunk]);
        let none = fixture.repository.fetch_objects(&session, &[chunk], u32::MAX);
        assert_eq!(missing_of(none), [chunk]);
    };
    check(&fixture);
    let fixture = fixture.restarted();
    check(&fixture);
}

fn a_read_session_fetches_too(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    fixture.snapshot("root", &[id("chunk")], None);
    let session = fixture.repository.open_session(&SessionPurpose::Read).unwrap().session;
    let blocks =
        fixture.repository.fetch_objects(&session, &[id("root"), id("chunk")], 0).unwrap().blocks;
    assert_eq!(blocks.len(), 2);
    fixture.repository.close_session(&session).unwrap();
}

fn fetching_needs_an_open_session(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let unknown = SessionId::from_bytes([5; 16]);
    assert_no_session(fixture.repository.fetch_objects(&unknown, &[id("chunk")], 0));
    assert_no_session(fixture.repository.read_blocks(&unknown, 0));
}

fn objects_of(block: &Bytes) -> Vec<ObjectId> {
    let block = Block::decode(block.clone()).expect("fetched blocks are whole");
    block.table().entries.iter().map(|entry| entry.id).collect()
}
