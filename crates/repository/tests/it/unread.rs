//! Files that the disk does not give for a while, and what is stored meanwhile.

use std::fs;
use std::path::{Path, PathBuf};

use holdall_format::{ObjectId, RecordKind, SessionId};
use holdall_protocol::contract::{ContractWorld, Forge};
use holdall_protocol::{CommitAnswer, Repository, SessionPurpose};

use crate::world::{MACHINE, MACHINE_SEED, World};

const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;

/// Chunks, and a node that refers to them.
struct Stored {
    chunks: Vec<ObjectId>,
    node: ObjectId,
}

/// As many objects, by numbers from that one on.
fn objects(first: u8, chunks: u8) -> Stored {
    let id = |number| ObjectId::from_bytes([number; 32]);
    Stored { chunks: (first + 1..=first + chunks).map(id).collect(), node: id(first) }
}

fn open_session(world: &World) -> SessionId {
    let purpose = SessionPurpose::Backup { parents: vec![] };
    world.handle().open_session(&purpose).unwrap().session
}

/// Puts the node, and then each chunk, in blocks of their own with payloads of that length.
fn put(world: &World, forge: &Forge, stored: &Stored, payload_bytes: usize) -> SessionId {
    let session = open_session(world);
    world.handle().put_blocks(&session, &[forge.nodes(&[(stored.node, &stored.chunks)])]).unwrap();
    for chunk in &stored.chunks {
        let block = forge.chunks_of_bytes(&[*chunk], payload_bytes);
        world.handle().put_blocks(&session, &[block]).unwrap();
    }
    session
}

/// All files in one of the repository's folders.
fn files(world: &World, folder: &str) -> Vec<PathBuf> {
    let mut folders = vec![world.dir().join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let (inner, files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
        folders.extend(inner);
        found.extend(files);
    }
    found
}

fn aside(world: &World, path: &Path) -> PathBuf {
    world.dir().join("..").join(path.file_name().unwrap())
}

/// Something is committed while files can not be read in which nothing is that was committed. Once they can
/// be, it is not there: nothing that is closed has its arrival position.
fn nothing_unread_is_closed(
    mut world: World,
    forge: &Forge,
    (unread, earlier): (&[PathBuf], &Stored),
) {
    world.close();
    for path in unread {
        fs::rename(path, aside(&world, path)).unwrap();
        fs::create_dir(path).unwrap(); // A file that can not be opened.
    }
    // The index would tell what packs hold that it has seen.
    fs::remove_dir_all(world.cache_dir()).unwrap();
    world.restart();
    let later = objects(100, 20);
    let session = put(&world, forge, &later, 64);
    let record = forge.record(RecordKind::Snapshot, later.node, None);
    let answer = world.handle().commit(&session, &record).unwrap();
    assert!(matches!(answer, CommitAnswer::Committed(_)));

    world.close();
    for path in unread {
        fs::remove_dir(path).unwrap();
        fs::rename(aside(&world, path), path).unwrap();
    }
    world.clock.advance_ns(8 * DAY_NS); // The first session lapses.
    world.restart();
    let session = open_session(&world);
    for (stored, is_missing) in [(earlier, true), (&later, false)] {
        let asked = [&stored.chunks[..], &[stored.node]].concat();
        let missing = world.handle().missing(&session, &asked).unwrap();
        assert_eq!(missing, vec![is_missing; asked.len()], "{unread:?} were not read");
        for object in asked {
            let fetched = world.handle().fetch_objects(&session, &[object], 0).unwrap();
            assert_eq!(fetched.blocks.len(), 1);
        }
    }
}

fn world() -> (World, Forge) {
    let world = World::new();
    let forge = Forge::new(1, MACHINE, &MACHINE_SEED);
    world.handle().create(&forge.new_repository()).unwrap();
    (world, forge)
}

#[test]
fn blocks_of_tails_that_could_not_be_read_share_no_position_with_those_that_came_meanwhile() {
    for unread in ["payload", "journal"] {
        let (world, forge) = world();
        let earlier = objects(1, 3);
        put(&world, &forge, &earlier, 64);
        let mut paths = files(&world, "tails");
        paths.retain(|path| path.extension().is_some_and(|end| end == unread));
        assert_eq!(paths.len(), 2, "one for nodes and one for chunks");
        nothing_unread_is_closed(world, &forge, (&paths, &earlier));
    }
}

#[test]
fn blocks_of_a_pack_that_could_not_be_read_share_no_position_with_those_that_came_meanwhile() {
    let (world, forge) = world();
    let earlier = objects(1, 12);
    put(&world, &forge, &earlier, 4 << 20);
    let packs = files(&world, "packs");
    assert_eq!(packs.len(), 1, "one is full");
    nothing_unread_is_closed(world, &forge, (&packs, &earlier));
}
