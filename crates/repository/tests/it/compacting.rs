//! Compacting: blocks that are mostly dead give way, and nobody loses by it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use holdall_format::{ObjectId, SessionId, TombstoneReason};
use holdall_protocol::contract::{ContractWorld, Forge, TestKey};
use holdall_protocol::{
    Compacting, OwnedRepository, PruneReport, Repository, RepositoryError, SessionPurpose,
};
use holdall_repository::{EmbeddedRepository, PruneOptions, Store, Supersession};

use crate::house::{House, copy_files, id, names};
use crate::world::{MACHINE, MACHINE_SEED};

const WEEK_NS: i64 = 7 * 24 * 3600 * 1_000_000_000;

/// The references of each node that was ever put; a chunk has none.
pub(crate) type References = BTreeMap<ObjectId, Vec<ObjectId>>;

pub(crate) fn machine(store: &Arc<Store>) -> EmbeddedRepository {
    store.for_machine(MACHINE, TestKey::from_seed(&MACHINE_SEED).public())
}

/// Has sparse blocks give way as a client does; says how many there were, and what became of them.
pub(crate) fn compact(
    store: &Arc<Store>,
    forge: &Forge,
    references: &References,
    hold: bool,
) -> (u64, Option<Supersession>) {
    let (session, blocks) = put_again(store, forge, references);
    let superseded = store.supersede(&blocks, hold).unwrap();
    store.end_session(&MACHINE, &session).unwrap();
    (blocks.len() as u64, superseded)
}

/// Puts what is needed of sparse blocks again, each in a block of its own; says in which session, and
/// which blocks those are.
fn put_again(store: &Arc<Store>, forge: &Forge, references: &References) -> (SessionId, Vec<u64>) {
    let machine = machine(store);
    let purpose = SessionPurpose::Backup { parents: vec![] };
    let session = machine.open_session(&purpose).unwrap().session;
    let (mut blocks, mut from) = (Vec::new(), 0);
    loop {
        let sparse = store.sparse_blocks(from).unwrap();
        let Some(last) = sparse.last() else { break };
        from = last.arrival + 1;
        for block in &sparse {
            assert!(!block.living.is_empty() && block.living.len() as u64 * 2 <= block.objects);
            for object in &block.living {
                let again = match references.get(object) {
                    Some(refs) => forge.nodes(&[(*object, refs)]),
                    None => forge.chunks(&[*object]),
                };
                machine.put_blocks(&session, &[again]).unwrap();
            }
            blocks.push(block.arrival);
        }
    }
    (session, blocks)
}

fn prune(store: &Store) -> PruneReport {
    let options = PruneOptions { grace: Duration::ZERO, sparse_part: 20 };
    store.prune(&options, &AtomicBool::new(false)).unwrap()
}

/// A block of 10 chunks of which one snapshot needs the last one, and a block of two nodes of which it
/// needs one; the other snapshot is forgotten.
fn sparse_house() -> (House, References) {
    let mut house = House::new();
    let session = house.session(&[]);
    let chunks: Vec<ObjectId> = names(0..10).iter().map(|name| id(name)).collect();
    let block = house.forge.chunks_of_bytes(&chunks, 3 << 20);
    house.repository().put_blocks(&session, &[block]).unwrap();
    let (one, two) = ((id("one"), chunks.clone()), (id("two"), vec![id("chunk 9")]));
    let nodes = house.forge.nodes(&[(one.0, &one.1), (two.0, &two.1)]);
    house.repository().put_blocks(&session, &[nodes]).unwrap();
    let first = house.try_commit(&session, "one").unwrap();
    let session = house.session(&[]);
    house.try_commit(&session, "two").unwrap();
    house.repository().forget(&[first]).unwrap();
    (house, References::from([one, two]))
}

/// The block that counts for an object.
fn first_copy(house: &House, object: ObjectId) -> bytes::Bytes {
    let session = house.repository().open_session(&SessionPurpose::Read).unwrap().session;
    let fetched = house.repository().fetch_objects(&session, &[object], 0).unwrap();
    house.repository().close_session(&session).unwrap();
    fetched.blocks[0].clone()
}

#[test]
fn what_is_needed_of_a_sparse_block_counts_elsewhere_and_the_block_goes() {
    let (mut house, references) = sparse_house();
    house.prune();
    let before = house.repository().usage().unwrap().stored_bytes;
    assert!(before > 3 << 20, "a prune cannot take a block apart");
    let store = house.store();
    let sparse = store.sparse_blocks(0).unwrap();
    let told: Vec<_> = sparse.iter().map(|one| (one.objects, one.living.clone())).collect();
    assert_eq!(told, [(10, vec![id("chunk 9")]), (2, vec![id("two")])]);
    let (_, blocks) = put_again(&store, &house.forge, &references);
    assert_eq!(blocks, sparse.iter().map(|one| one.arrival).collect::<Vec<_>>());
    let superseded = store.supersede(&blocks, false).unwrap().unwrap();
    assert_eq!(superseded.blocks, 2);
    assert_eq!(store.supersede(&blocks, false).unwrap(), Some(superseded), "asked again");
    assert_eq!(store.sparse_blocks(0).unwrap(), []);
    drop(store);
    for cache_is_lost in [false, true] {
        house.world.close();
        if cache_is_lost {
            std::fs::remove_dir_all(house.world.cache_dir()).unwrap();
        }
        house.world.restart();
        assert!(first_copy(&house, id("chunk 9")).len() < 8192, "the new copy is handed out");
        let session = house.session(&[]);
        let missing = house.repository().missing(&session, &[id("chunk 9"), id("two")]).unwrap();
        assert_eq!(missing, [false, false]);
        // What it was told is there would keep its pack.
        house.repository().close_session(&session).unwrap();
        house.assert_whole();
    }
    house.prune();
    assert!(house.repository().usage().unwrap().stored_bytes < 1 << 20);
    let marks = || std::fs::read_dir(house.world.dir().join("superseded")).unwrap().count();
    house.prune();
    assert_eq!(marks(), 0, "a mark goes with its blocks");
    assert!(house.has(id("chunk 9")) && !house.has(id("chunk 0")));
    house.assert_whole();
}

#[test]
fn a_block_stays_where_something_needed_of_it_is_nowhere_else() {
    let (mut house, _) = sparse_house();
    let store = house.store();
    let blocks: Vec<u64> = store.sparse_blocks(0).unwrap().iter().map(|one| one.arrival).collect();
    assert_eq!(store.supersede(&blocks, false).unwrap(), None, "nothing was put again");
    assert_eq!(store.supersede(&[], false).unwrap(), None);
    assert_eq!(store.supersede(&[u64::MAX], false).unwrap(), None, "no such block");
    let too_many = vec![1; holdall_protocol::MAX_IDS + 1];
    let refused = store.supersede(&too_many, false);
    assert!(matches!(refused, Err(RepositoryError::Refused { .. })), "{refused:?}");
    prune(&store);
    drop(store);
    house.world.restart();
    assert!(house.has(id("chunk 9")) && house.has(id("two")));
}

/// A copy with other references would let go of what the right ones refer to.
#[test]
fn a_block_does_not_give_way_to_a_node_with_other_references() {
    let mut house = House::new();
    let session = house.session(&[]);
    let lost = house.forge.chunks_of_bytes(&[id("chunk 0")], 1 << 20);
    house.repository().put_blocks(&session, &[lost]).unwrap();
    let others: Vec<ObjectId> = names(10..14).iter().map(|name| id(name)).collect();
    let dead: Vec<(ObjectId, &[ObjectId])> = others.iter().map(|one| (*one, &[][..])).collect();
    let refs = [id("chunk 0")];
    let nodes = [dead.as_slice(), &[(id("root"), &refs[..])]].concat();
    // The first copy counts for the commit; the second was put when nothing was committed yet.
    for block in [house.forge.nodes(&nodes), house.forge.nodes(&[(id("root"), &[])])] {
        house.repository().put_blocks(&session, &[block]).unwrap();
    }
    house.try_commit(&session, "root").unwrap();
    let store = house.store();
    let sparse: Vec<u64> = store.sparse_blocks(0).unwrap().iter().map(|one| one.arrival).collect();
    assert_eq!(sparse.len(), 1);
    assert_eq!(store.supersede(&sparse, false).unwrap(), None);
    house.world.clock.advance_ns(2 * WEEK_NS);
    prune(&store);
    drop(store);
    house.world.restart();
    house.assert_whole();
    assert!(house.has(id("chunk 0")));
}

/// What nobody needs now may be needed tomorrow, and by the references of the copy that counts then.
#[test]
fn a_block_does_not_give_way_where_a_dead_node_has_a_copy_with_other_references() {
    let (mut house, references) = sparse_house();
    let session = house.session(&[]);
    // Nothing holds the keeper to the references of a node that no snapshot reaches any more.
    house.prune();
    house.repository().put_blocks(&session, &[house.forge.nodes(&[(id("one"), &[])])]).unwrap();
    house.repository().close_session(&session).unwrap();
    let store = house.store();
    let (_, blocks) = put_again(&store, &house.forge, &references);
    assert_eq!(blocks.len(), 2);
    let superseded = store.supersede(&blocks, false).unwrap().unwrap();
    assert_eq!(superseded.blocks, 1, "the chunks' block alone");
    assert_eq!(store.sparse_blocks(0).unwrap().len(), 1);
}

#[test]
fn what_is_held_stays_and_counts_first_again_when_it_is_taken_back() {
    let (mut house, references) = sparse_house();
    let gone = house.snapshot("gone", &names(50..62), 5 << 20);
    let store = house.store();
    let (_, blocks) = put_again(&store, &house.forge, &references);
    let superseded = store.supersede(&blocks, true).unwrap().unwrap();
    assert_eq!(store.held_supersessions().unwrap(), [superseded.number]);
    house.world.clock.advance_ns(2 * WEEK_NS);
    store.forget(&[gone], TombstoneReason::Request).unwrap();
    assert!(prune(&store).deleted_packs > 0);
    let reader = machine(&store);
    let session = reader.open_session(&SessionPurpose::Read).unwrap().session;
    let counts = reader.fetch_objects(&session, &[id("chunk 9")], 0).unwrap().blocks;
    assert!(counts[0].len() < 8192, "which copy counts is known also after packs went");
    reader.close_session(&session).unwrap();
    drop(reader);
    prune(&store);
    drop(store);
    house.world.restart();
    assert!(house.repository().usage().unwrap().stored_bytes > 3 << 20, "the old block stays");
    assert!(first_copy(&house, id("chunk 9")).len() < 8192, "and comes behind the new one");

    let store = house.store();
    store.take_superseded_back(superseded.number).unwrap();
    assert!(store.held_supersessions().unwrap().is_empty());
    drop(store);
    house.world.restart();
    assert!(first_copy(&house, id("chunk 9")).len() > 3 << 20, "the first copy counts");
    let store = house.store();
    prune(&store);
    assert_eq!(store.sparse_blocks(0).unwrap().len(), 2, "nothing is needed of what was put again");

    let (_, blocks) = put_again(&store, &house.forge, &references);
    let superseded = store.supersede(&blocks, true).unwrap().unwrap();
    assert!(store.let_superseded_go(superseded.number).unwrap());
    assert!(store.let_superseded_go(superseded.number).unwrap());
    assert!(store.held_supersessions().unwrap().is_empty());
    prune(&store);
    drop(store);
    house.world.restart();
    assert!(house.repository().usage().unwrap().stored_bytes < 1 << 20);
    house.assert_whole();
    assert!(house.has(id("chunk 9")) && house.has(id("two")));
}

#[test]
fn while_nobody_knows_what_a_mark_holds_nothing_is_deleted() {
    let (mut house, references) = sparse_house();
    let store = house.store();
    let (_, superseded) = compact(&store, &house.forge, &references, true);
    let number = superseded.unwrap().number;
    drop(store);
    let mark = house.world.dir().join(format!("superseded/{number:016x}.held"));
    std::fs::write(&mark, b"rot").unwrap();
    house.world.restart();
    let refused = house.repository().prune(false);
    assert!(matches!(refused, Err(RepositoryError::Damaged { .. })), "{refused:?}");
    assert!(house.has(id("chunk 9")) && house.has(id("two")));
    let store = house.store();
    assert_eq!(store.held_supersessions().unwrap(), [number]);
    store.take_superseded_back(number).unwrap();
    prune(&store);
    drop(store);
    house.world.restart();
    assert!(!mark.exists());
    assert!(first_copy(&house, id("chunk 9")).len() > 3 << 20, "the first copy counts");

    // Nor does one that cannot be read at all keep anybody from reading the rest.
    std::fs::create_dir(&mark).unwrap();
    house.world.restart();
    assert!(house.has(id("chunk 9")) && house.has(id("two")));
    let refused = house.repository().prune(false);
    assert!(matches!(refused, Err(RepositoryError::Damaged { .. })), "{refused:?}");
}

#[test]
fn what_is_held_is_not_let_go_once_what_it_gave_way_to_is_damaged() {
    let (mut house, references) = sparse_house();
    let store = house.store();
    let (_, superseded) = compact(&store, &house.forge, &references, true);
    let number = superseded.unwrap().number;
    // What was put last is the chunk's new block.
    let payload = house.world.tail_file("chunks", "payload");
    let mut bytes = std::fs::read(&payload).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&payload, bytes).unwrap();
    assert!(!store.let_superseded_go(number).unwrap());
    assert_eq!(store.held_supersessions().unwrap(), [number]);
}

#[test]
fn a_session_ends_by_what_gives_way_so_that_the_rest_of_what_it_put_can_go() {
    let (house, _) = sparse_house();
    let repository = house.repository();
    let sparse = repository.sparse_blocks(0).unwrap();
    let session = house.session(&[]);
    let of_nobody = house.forge.chunks_of_bytes(&[id("of nobody")], 2 << 20);
    let again = house.forge.chunks(&[id("chunk 9")]);
    repository.put_blocks(&session, &[of_nobody, again]).unwrap();
    let gave_way = repository.supersede(&session, &[sparse[0].arrival]).unwrap();
    assert_eq!((gave_way.blocks, gave_way.waiting), (1, None));
    let ended = repository.missing(&session, &[id("chunk 9")]);
    assert!(matches!(ended, Err(RepositoryError::NoSession { .. })), "{ended:?}");
    house.prune();
    assert!(!house.has(id("of nobody")) && house.has(id("chunk 9")));
    assert!(house.repository().usage().unwrap().stored_bytes < 1 << 20);
}

/// What a backup is putting is not dead, though no snapshot reaches it yet.
#[test]
fn what_a_live_session_put_is_not_sparse() {
    let mut house = House::new();
    let session = house.session(&[]);
    let chunks: Vec<ObjectId> = names(0..10).iter().map(|name| id(name)).collect();
    let put = [house.forge.chunks(&chunks), house.forge.nodes(&[(id("root"), &chunks[..1])])];
    house.repository().put_blocks(&session, &put).unwrap();
    let other = house.session(&[]);
    house.try_commit(&other, "root").unwrap();
    let store = house.store();
    assert_eq!(store.sparse_blocks(0).unwrap(), []);
    house.world.clock.advance_ns(2 * WEEK_NS);
    assert_eq!(store.sparse_blocks(0).unwrap().len(), 1);
}

/// As on a share that two computers use: this one's cache says of another order what is closed.
#[test]
fn a_cache_from_before_is_not_believed_about_what_is_closed() {
    let (mut house, references) = sparse_house();
    house.world.close();
    let (cache, kept) = (house.world.cache_dir(), house.world.dir().join("../kept"));
    copy_files(&cache, &kept);
    let store = house.store();
    let (_, blocks) = put_again(&store, &house.forge, &references);
    store.supersede(&blocks, false).unwrap().unwrap();
    drop(store);
    std::fs::remove_dir_all(&cache).unwrap();
    copy_files(&kept, &cache);
    // Nothing counts as there because a live session put it.
    house.world.clock.advance_ns(2 * WEEK_NS);
    house.world.restart();
    let session = house.session(&[]);
    let missing = house.repository().missing(&session, &[id("chunk 9"), id("two")]).unwrap();
    assert_eq!(missing, [false, false], "found again from records");
    house.prune();
    house.assert_whole();
    assert!(house.has(id("chunk 9")));
}
