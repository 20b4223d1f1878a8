//! The index and what is closed are derived: deleted, damaged or out of date, they come back, and
//! every answer is the same.

use std::fs;
use std::path::PathBuf;

use bytes::Bytes;
use holdall_format::{ObjectId, Record, RecordKind, SessionId};
use holdall_protocol::contract::{ContractWorld, Forge};
use holdall_protocol::{CommitAnswer, Repository, SessionPurpose};
use proptest::prelude::*;

use crate::world::{MACHINE, MACHINE_SEED, World};

fn id(number: u32) -> ObjectId {
    ObjectId::from_bytes(*blake3::hash(&number.to_le_bytes()).as_bytes())
}

fn open_session(repository: &dyn Repository) -> SessionId {
    let purpose = SessionPurpose::Backup { parents: vec![] };
    repository.open_session(&purpose).unwrap().session
}

/// Every object of a repository, with the block that is its first copy and whether it is there for
/// a new session.
struct Expected {
    objects: Vec<(ObjectId, Bytes, bool)>,
}

/// Several packs and two tails, with objects that are closed, not closed, and there twice.
fn filled(world: &World) -> Expected {
    let repository = world.handle();
    let forge = Forge::new(1, MACHINE, &MACHINE_SEED);
    repository.create(&forge.new_repository()).unwrap();
    let mut objects = Vec::new();
    let mut head = None;
    let mut number = 0;
    for snapshot in 0..3u32 {
        let session = open_session(&*repository);
        let mut chunks = Vec::new();
        for _ in 0..14 {
            let ids: Vec<ObjectId> = (number..number + 20).map(id).collect();
            number += 20;
            let block = forge.chunks_of_bytes(&ids, 4 << 20);
            // The last object of each block is reached by no record.
            for (nth, object) in ids.iter().enumerate() {
                objects.push((*object, block.clone(), nth < 19));
            }
            chunks.extend_from_slice(&ids[..19]);
            repository.put_blocks(&session, std::slice::from_ref(&block)).unwrap();
            repository.put_blocks(&session, &[forge.chunks(&ids[..1])]).unwrap();
        }
        let root = id(1_000_000 + snapshot);
        let nodes = forge.nodes(&[(root, &chunks)]);
        objects.push((root, nodes.clone(), true));
        repository.put_blocks(&session, &[nodes]).unwrap();
        let record = forge.record(RecordKind::Snapshot, root, head);
        let answer = repository.commit(&session, &record).unwrap();
        assert!(matches!(answer, CommitAnswer::Committed(_)));
        let record = Record::decode(&record).unwrap();
        head = Some((record.hash(), record.head.sequence));
    }
    Expected { objects }
}

impl Expected {
    fn check(&self, world: &World) {
        let repository = world.handle();
        let session = open_session(&*repository);
        let ids: Vec<ObjectId> = self.objects.iter().map(|(id, ..)| *id).collect();
        let there: Vec<bool> =
            repository.missing(&session, &ids).unwrap().iter().map(|missing| !missing).collect();
        let expected: Vec<bool> = self.objects.iter().map(|(.., there)| *there).collect();
        assert_eq!(there, expected);
        for (object, block, _) in self.objects.iter().step_by(17) {
            let fetched = repository.fetch_objects(&session, &[*object], 0).unwrap().blocks;
            assert_eq!(fetched, std::slice::from_ref(block));
        }
        repository.close_session(&session).unwrap();
    }
}

fn index_files(world: &World) -> Vec<PathBuf> {
    let entries = fs::read_dir(world.cache_dir()).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Puts the index back as it was while the world runs.
fn stored_index(world: &mut World) -> Vec<(PathBuf, Vec<u8>)> {
    world.close();
    let files = index_files(world);
    files.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[test]
fn an_index_that_is_deleted_or_cut_comes_back() {
    let mut world = World::new();
    let expected = filled(&world);
    expected.check(&world);
    world.restart();
    expected.check(&world);

    world.close();
    fs::remove_dir_all(world.cache_dir()).unwrap();
    world.restart();
    expected.check(&world);

    for (path, bytes) in stored_index(&mut world) {
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        world.restart();
        expected.check(&world);
        world.close();
    }
}

#[test]
fn an_index_of_an_earlier_moment_is_brought_up_to_date() {
    let mut world = World::new();
    let forge = Forge::new(1, MACHINE, &MACHINE_SEED);
    world.handle().create(&forge.new_repository()).unwrap();
    let session = open_session(&*world.handle());
    let early = forge.chunks(&[id(1)]);
    world.handle().put_blocks(&session, std::slice::from_ref(&early)).unwrap();
    let root = forge.nodes(&[(id(2), &[id(1)])]);
    world.handle().put_blocks(&session, &[root]).unwrap();
    let record = forge.record(RecordKind::Snapshot, id(2), None);
    world.handle().commit(&session, &record).unwrap();
    let earlier = stored_index(&mut world);

    // The closed objects move from tails into packs, which the stored index does not know.
    world.restart();
    let session = open_session(&*world.handle());
    for number in 100..112 {
        let block = forge.chunks_of_bytes(&[id(number)], 4 << 20);
        world.handle().put_blocks(&session, &[block]).unwrap();
    }
    let all: Vec<ObjectId> = (100..112).map(id).chain([id(2)]).collect();
    let nodes = forge.nodes(&[(id(3), &all)]);
    world.handle().put_blocks(&session, &[nodes]).unwrap();
    let record = Record::decode(&record).unwrap();
    let next = forge.record(RecordKind::Snapshot, id(3), Some((record.hash(), 1)));
    world.handle().commit(&session, &next).unwrap();
    world.close();
    for path in index_files(&world) {
        fs::remove_file(path).unwrap();
    }
    for (path, bytes) in earlier {
        fs::write(path, bytes).unwrap();
    }
    world.restart();
    let session = open_session(&*world.handle());
    let ids: Vec<ObjectId> = [1, 2, 3].into_iter().chain(100..112).map(id).collect();
    let missing = world.handle().missing(&session, &ids).unwrap();
    assert_eq!(missing, vec![false; ids.len()]);
}

#[test]
fn a_damaged_index_gives_the_same_answers() {
    let mut world = World::new();
    let expected = filled(&world);
    let stored = stored_index(&mut world);
    let total: usize = stored.iter().map(|(_, bytes)| bytes.len()).sum();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(16));
    let world = std::cell::RefCell::new(world);
    runner
        .run(&(0..total, 1u8..), |(at, flip)| {
            let world = &mut *world.borrow_mut();
            world.close();
            let mut skip = at;
            for (path, bytes) in &stored {
                let mut bytes = bytes.clone();
                if let Some(byte) = bytes.get_mut(skip) {
                    *byte ^= flip;
                    skip = usize::MAX;
                } else {
                    skip = skip.saturating_sub(bytes.len());
                }
                fs::write(path, bytes).unwrap();
            }
            world.restart();
            expected.check(world);
            Ok(())
        })
        .unwrap();
}

#[test]
fn another_repositorys_index_is_not_used() {
    let mut world = World::new();
    let expected = filled(&world);
    let other = World::new();
    let forge = Forge::new(2, MACHINE, &MACHINE_SEED);
    other.handle().create(&forge.new_repository()).unwrap();
    let session = open_session(&*other.handle());
    other.handle().put_blocks(&session, &[forge.chunks(&[id(1)])]).unwrap();
    let mut other = other;
    other.close();
    world.close();
    fs::remove_dir_all(world.cache_dir()).unwrap();
    fs::create_dir_all(world.cache_dir()).unwrap();
    for path in index_files(&other) {
        fs::copy(&path, world.cache_dir().join(path.file_name().unwrap())).unwrap();
    }
    world.restart();
    expected.check(&world);
}
