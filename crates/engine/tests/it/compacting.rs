//! What a wrong copy does that others gave way to: nobody restores it, and a check tells of it.

use std::fs;

use bytes::Bytes;
use holdall_crypto::{PlainObject, Sealer, SystemEntropy};
use holdall_engine::{Run, UnlockedRepository, compact};
use holdall_format::{Block, BlockKind, ObjectId, SessionId};
use holdall_protocol::{Compacting, OwnedRepository, ScrubDamage, SessionPurpose};

use crate::world::{World, newest, verified};

/// Twenty files that share a block.
fn backed_up() -> World {
    let world = World::new();
    for number in 0..20u8 {
        fs::write(world.source().join(number.to_string()), vec![number; 5000]).unwrap();
    }
    world.backup();
    world
}

/// The chunks of a small repository, by block.
fn chunks(access: &UnlockedRepository, session: &SessionId) -> Vec<Vec<ObjectId>> {
    let page = access.repository().read_blocks(session, 0).unwrap();
    let blocks = page.blocks.into_iter().map(|bytes| Block::decode(bytes).unwrap());
    let of_chunks = blocks.filter(|block| block.header().kind == BlockKind::Chunks);
    of_chunks.map(|block| block.table().entries.iter().map(|entry| entry.id).collect()).collect()
}

/// A block that opens, and in which none of these is what its id says.
fn lies(access: &UnlockedRepository, ids: &[ObjectId]) -> Bytes {
    let suite = access.config().suite;
    let mut sealer = Sealer::new(access.keys().sealing(), suite, 3, Box::new(SystemEntropy));
    let objects: Vec<PlainObject> =
        ids.iter().map(|id| PlainObject { id: *id, refs: Vec::new(), len: 100 }).collect();
    let sealed = sealer.seal(BlockKind::Chunks, &objects, &vec![b'x'; 100 * ids.len()]).unwrap();
    sealed.into_bytes().into()
}

/// Whoever may put could have put wrong copies before: they would count next.
#[test]
fn nothing_gives_way_to_a_wrong_copy_that_was_put_before() {
    let world = backed_up();
    let first = newest(&world.access(), None).id;
    for number in 1..20u8 {
        fs::remove_file(world.source().join(number.to_string())).unwrap();
    }
    world.backup();
    let (access, repository) = world.owned();
    repository.forget(&[first]).unwrap();
    let purpose = SessionPurpose::Backup { parents: vec![] };
    let session = access.repository().open_session(&purpose).unwrap().session;
    for ids in chunks(&access, &session) {
        access.repository().put_blocks(&session, &[lies(&access, &ids)]).unwrap();
    }
    // It stays for a week, as what a run put that was killed.
    access.repository().close_session(&session).unwrap();
    let report = compact(&access, repository.as_ref(), false, &Run::new()).unwrap();
    // A block of nodes may be sparse, too, by where the repository's keys let leaves end.
    let stay = report.sparse_blocks - report.blocks;
    assert_eq!((stay, report.damaged_blocks), (1, 1), "{report:?}");
    repository.prune(false).unwrap();
    drop((access, repository));
    assert_eq!(world.differences("restored"), []);
}

#[test]
fn a_wrong_copy_that_others_gave_way_to_is_told_and_not_restored_while_they_are_there() {
    let world = backed_up();
    let (access, repository) = world.owned();
    let purpose = SessionPurpose::Backup { parents: vec![] };
    let session = access.repository().open_session(&purpose).unwrap().session;
    let stored = chunks(&access, &session);
    assert_eq!(stored.len(), 1);
    let lie = lies(&access, &stored[0]);
    access.repository().put_blocks(&session, std::slice::from_ref(&lie)).unwrap();
    // What was put by the backup has one of the first positions, and nodes have no other copies.
    let gives_way =
        |position: &u64| repository.supersede(&session, &[*position]).unwrap().blocks == 1;
    assert!((1..10).find(gives_way).is_some());
    let session = access.repository().open_session(&SessionPurpose::Read).unwrap().session;
    let counts = access.repository().fetch_objects(&session, &stored[0][..1], 0).unwrap();
    assert_eq!(counts.blocks, [lie], "the wrong copy counts");
    drop((access, repository));

    assert_eq!(world.differences("restored"), []);
    let report = verified(&world.access());
    let wrong = |damage: &&ScrubDamage| matches!(damage, ScrubDamage::Block { .. });
    assert_eq!(report.damaged.iter().filter(wrong).count(), 1, "{:?}", report.damaged);
    assert_eq!(report.damaged_path_count, 0, "nothing is lost yet");
}
