//! Storing blocks.

use bytes::Bytes;
use holdall_format::{BlockKind, RecordKind, SessionId};

use super::ContractWorld;
use super::cases;
use super::fixture::{Fixture, assert_no_session, assert_refused};
use super::forge::{Forge, id, ids};
use crate::{MAX_PUT_BYTES, SessionPurpose};

cases![
    a_block_that_was_put_is_fetched_as_it_was,
    a_block_that_was_put_is_there_after_a_restart,
    putting_nothing_is_allowed,
    the_same_block_may_be_put_twice,
    blocks_that_break_the_format_are_refused,
    blocks_of_another_repository_are_refused,
    sealed_halves_of_records_are_no_blocks_to_put,
    more_bytes_than_the_limit_are_refused,
    puts_need_an_open_session,
    what_many_threads_put_at_once_is_all_there,
    a_closed_node_is_not_given_other_references,
    a_node_that_is_not_closed_may_get_a_second_copy,
];

fn a_block_that_was_put_is_fetched_as_it_was(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    let (chunk, node) = (id("chunk"), id("node"));
    let blocks = [fixture.forge.chunks(&[chunk]), fixture.forge.nodes(&[(node, &[chunk])])];
    fixture.put(&session, &blocks);
    let fetched = fixture.repository.fetch_objects(&session, &[chunk, node], 0).unwrap().blocks;
    assert_eq!(fetched, blocks);
}

fn a_block_that_was_put_is_there_after_a_restart(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let chunk = id("chunk");
    let block = fixture.forge.chunks(&[chunk]);
    fixture.put(&fixture.session(), std::slice::from_ref(&block));
    let fixture = fixture.restarted();
    let fetched = fixture.repository.fetch_objects(&fixture.session(), &[chunk], 0).unwrap().blocks;
    assert_eq!(fetched, [block]);
}

fn putting_nothing_is_allowed(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    fixture.put(&fixture.session(), &[]);
}

fn the_same_block_may_be_put_twice(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    let chunk = id("chunk");
    let block = fixture.forge.chunks(&[chunk]);
    fixture.put(&session, &[block.clone(), block.clone()]);
    fixture.put(&session, std::slice::from_ref(&block));
    let fetched = fixture.repository.fetch_objects(&session, &[chunk, chunk], 0).unwrap().blocks;
    assert_eq!(fetched, [block]);
}

fn blocks_that_break_the_format_are_refused(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    let chunk = id("chunk");
    let good = fixture.forge.chunks(&[chunk]);
    let mut other_table = good.to_vec();
    other_table[holdall_format::BLOCK_HEADER_BYTES + 5] ^= 1;
    let cut = good.slice(..good.len() - 1);
    let longer = Bytes::from([&good[..], &[0]].concat());
    for bad in [Bytes::from(other_table), cut, longer, Bytes::new()] {
        assert_refused(fixture.repository.put_blocks(&session, &[bad]));
    }
    assert_eq!(fixture.missing(&session, &[chunk]), [true]);
}

fn blocks_of_another_repository_are_refused(world: &mut dyn ContractWorld) {
    let other = Forge::new(2, world.machine(), &world.machine_seed());
    let fixture = Fixture::new(world);
    let session = fixture.session();
    assert_refused(fixture.repository.put_blocks(&session, &[other.chunks(&[id("chunk")])]));
    assert_eq!(fixture.missing(&session, &[id("chunk")]), [true]);
}

fn sealed_halves_of_records_are_no_blocks_to_put(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    let block = fixture.forge.block(BlockKind::Record, vec![], 64);
    assert_refused(fixture.repository.put_blocks(&session, &[block]));
}

fn more_bytes_than_the_limit_are_refused(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    let mebibytes = MAX_PUT_BYTES >> 20;
    let blocks: Vec<Bytes> = ids("chunk", mebibytes)
        .iter()
        .map(|&chunk| fixture.forge.chunks_of_bytes(&[chunk], 1 << 20))
        .collect();
    assert_refused(fixture.repository.put_blocks(&session, &blocks));
    fixture.put(&session, &blocks[..mebibytes - 1]);
}

fn puts_need_an_open_session(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let block = fixture.forge.chunks(&[id("chunk")]);
    let unknown = SessionId::from_bytes([5; 16]);
    assert_no_session(
        fixture.repository.put_blocks(&unknown, std::slice::from_ref(&block)).map(|_| ()),
    );
    let session = fixture.session();
    fixture.repository.close_session(&session).unwrap();
    assert_no_session(fixture.repository.put_blocks(&session, &[block]).map(|_| ()));
    let purpose = SessionPurpose::Read;
    let reading = fixture.repository.open_session(&purpose).unwrap().session;
    let other = fixture.forge.chunks(&[id("other")]);
    assert_refused(fixture.repository.put_blocks(&reading, &[other]));
    fixture.repository.close_session(&session).expect("closing twice is no error");
    fixture.repository.close_session(&unknown).expect("closing what is unknown is no error");
}

fn what_many_threads_put_at_once_is_all_there(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    let (forge, repository) = (&fixture.forge, &fixture.repository);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                for chunks in ids(&format!("thread {thread}"), 20).chunks(4) {
                    let block = forge.chunks_of_bytes(chunks, 9000);
                    repository.put_blocks(&session, &[block]).unwrap();
                }
            });
        }
    });
    let all: Vec<_> = (0..8).flat_map(|thread| ids(&format!("thread {thread}"), 20)).collect();
    assert_eq!(fixture.missing(&session, &all), vec![false; all.len()]);
    let fixture = fixture.restarted();
    let blocks = fixture.repository.fetch_objects(&session, &all, 0).unwrap().blocks;
    assert_eq!(blocks.len(), 40);
}

fn a_closed_node_is_not_given_other_references(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let chunks = ids("chunk", 2);
    fixture.snapshot("root", &chunks, None);
    let session = fixture.session();
    let same = fixture.forge.nodes(&[(id("root"), &chunks)]);
    fixture.put(&session, &[same]);
    for refs in [&chunks[..1], &[], &[id("else")]] {
        let other = fixture.forge.nodes(&[(id("new"), &[]), (id("root"), refs)]);
        assert_refused(fixture.repository.put_blocks(&session, &[other]));
    }
}

fn a_node_that_is_not_closed_may_get_a_second_copy(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    let (node, chunk) = (id("node"), id("chunk"));
    fixture.put(&session, &[fixture.forge.chunks(&[chunk])]);
    fixture.put(&session, &[fixture.forge.nodes(&[(node, &[chunk])])]);
    fixture.put(&session, &[fixture.forge.nodes(&[(node, &[id("never put")])])]);
    // The first copy counts, so the snapshot is closed.
    let record = fixture.forge.record(RecordKind::Snapshot, node, None);
    fixture.commit(&session, &record);
}
