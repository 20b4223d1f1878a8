//! Files that the disk does not give for a while, and what is stored meanwhile.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdall_format::{ObjectId, RecordKind, SessionId};
use holdall_protocol::contract::{ContractWorld, Forge};
use holdall_protocol::{CommitAnswer, Repository, RepositoryError, SessionPurpose};
use holdall_repository::Store;
use holdall_testkit::is_alone;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::world::{MACHINE, MACHINE_SEED, World, signer};

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

/// Has the disk give these files no more, and forgets what an index tells of packs that it has seen.
fn hide(world: &mut World, files: &[PathBuf]) {
    world.close();
    for path in files {
        fs::rename(path, aside(world, path)).unwrap();
        fs::create_dir(path).unwrap(); // A file that cannot be opened.
    }
    fs::remove_dir_all(world.cache_dir()).unwrap();
    world.restart();
}

/// Has the disk give them again.
fn show(world: &mut World, files: &[PathBuf]) {
    world.close();
    for path in files {
        fs::remove_dir(path).unwrap();
        fs::rename(aside(world, path), path).unwrap();
    }
}

fn put_and_commit(world: &World, forge: &Forge, stored: &Stored) {
    let session = put(world, forge, stored, 64);
    let record = forge.record(RecordKind::Snapshot, stored.node, None);
    let answer = world.handle().commit(&session, &record).unwrap();
    assert!(matches!(answer, CommitAnswer::Committed(_)));
}

/// Of what is stored, `committed` alone counts as there once the sessions have lapsed: nothing that is closed
/// has the arrival position of anything else. All of it can be fetched.
fn only_what_was_committed_counts(world: &mut World, committed: &Stored, others: &[&Stored]) {
    world.close();
    world.clock.advance_ns(8 * DAY_NS);
    world.restart();
    let session = open_session(world);
    let others = others.iter().map(|stored| (*stored, true));
    for (stored, is_missing) in others.chain([(committed, false)]) {
        let asked = [&stored.chunks[..], &[stored.node]].concat();
        let missing = world.handle().missing(&session, &asked).unwrap();
        assert_eq!(missing, vec![is_missing; asked.len()]);
        for object in asked {
            let fetched = world.handle().fetch_objects(&session, &[object], 0).unwrap();
            assert_eq!(fetched.blocks.len(), 1);
        }
    }
}

/// Something is committed while files cannot be read in which nothing is that was committed.
fn nothing_unread_is_closed(
    mut world: World,
    forge: &Forge,
    (unread, earlier): (&[PathBuf], &Stored),
) {
    hide(&mut world, unread);
    let later = objects(100, 20);
    put_and_commit(&world, forge, &later);
    show(&mut world, unread);
    only_what_was_committed_counts(&mut world, &later, &[earlier]);
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

#[test]
fn once_the_disk_gives_a_pack_or_its_folder_the_store_is_worth_opening_again() {
    let (mut world, forge) = world();
    put(&world, &forge, &objects(1, 12), 4 << 20);
    let pack = files(&world, "packs").remove(0);
    world.close();
    let folder = pack.parent().unwrap().to_owned();
    let cache = world.cache_dir();
    for unread in [&pack, &folder] {
        fs::rename(unread, aside(&world, unread)).unwrap();
        fs::write(unread, b"neither").unwrap();
        fs::remove_dir_all(&cache).unwrap();
        let store = Store::open(&world.dir(), &cache, signer(), world.clock.clone()).unwrap();
        assert!(!store.reopen_would_recover());
        fs::remove_file(unread).unwrap();
        assert!(!store.reopen_would_recover());
        fs::rename(aside(&world, unread), unread).unwrap();
        assert!(store.reopen_would_recover());
        drop(store);
        let store = Store::open(&world.dir(), &cache, signer(), world.clock.clone()).unwrap();
        assert!(!store.reopen_would_recover());
    }
}

#[test]
fn once_the_disk_gives_a_record_the_store_is_worth_opening_again() {
    let (mut world, forge) = world();
    put_and_commit(&world, &forge, &objects(1, 3));
    let record = files(&world, "records").remove(0);
    world.close();
    let open =
        || Store::open(&world.dir(), &world.cache_dir(), signer(), world.clock.clone()).unwrap();
    fs::rename(&record, aside(&world, &record)).unwrap();
    fs::create_dir(&record).unwrap();
    let store = open();
    assert!(store.check_needed().is_err() && !store.reopen_would_recover());
    fs::remove_dir(&record).unwrap();
    assert!(!store.reopen_would_recover());
    fs::rename(aside(&world, &record), &record).unwrap();
    assert!(store.reopen_would_recover());
    drop(store);
    let store = open();
    store.check_needed().unwrap();
    assert!(!store.reopen_would_recover());
}

#[test]
fn a_store_that_does_not_know_whether_it_committed_is_worth_opening_again() {
    let (mut world, forge) = world();
    let stored = objects(1, 3);
    let session = put(&world, &forge, &stored, 64);
    world.close();
    let open =
        || Store::open(&world.dir(), &world.cache_dir(), signer(), world.clock.clone()).unwrap();
    let record = forge.record(RecordKind::Snapshot, stored.node, None);
    let commit = |store: &Arc<Store>| {
        store.for_machine(MACHINE, forge.key.public()).commit(&session, &record)
    };
    let store = open();
    let records = world.dir().join("records");
    fs::rename(&records, aside(&world, &records)).unwrap();
    fs::write(&records, b"no folder").unwrap();
    commit(&store).unwrap_err();
    fs::remove_file(&records).unwrap();
    fs::rename(aside(&world, &records), &records).unwrap();
    let refused = commit(&store).unwrap_err().to_string();
    assert!(refused.contains("is not known") && store.reopen_would_recover(), "{refused}");
    drop(store);
    let store = open();
    assert!(!store.reopen_would_recover());
    assert!(matches!(commit(&store).unwrap(), CommitAnswer::Committed(_)));
}

/// What is stored while the first files cannot be read goes on far behind them. Somebody who can read those,
/// and not what was stored meanwhile, would go on as far behind them.
#[test]
fn whoever_misses_what_came_while_others_were_missed_gives_none_of_its_positions_again() {
    let (mut world, forge) = world();
    let first = objects(1, 3);
    put(&world, &forge, &first, 64);
    let tails = files(&world, "tails");
    hide(&mut world, &tails);
    let second = objects(50, 12);
    put(&world, &forge, &second, 4 << 20);
    let packs = files(&world, "packs");
    assert_eq!(packs.len(), 1, "one is full");
    show(&mut world, &tails);
    // The names of its tails and the starts of its sessions alone would tell how far it went.
    files(&world, "sessions").iter().for_each(|session| fs::remove_file(session).unwrap());
    let mut later_tails = files(&world, "tails");
    later_tails.retain(|tail| !tails.contains(tail));
    later_tails.iter().for_each(|tail| fs::rename(tail, aside(&world, tail)).unwrap());
    hide(&mut world, &packs);
    let third = objects(100, 20);
    put_and_commit(&world, &forge, &third);
    show(&mut world, &packs);
    later_tails.iter().for_each(|tail| fs::rename(aside(&world, tail), tail).unwrap());
    only_what_was_committed_counts(&mut world, &third, &[&first, &second]);
}

#[test]
fn what_a_scrub_found_is_told_where_it_can_open_no_more_files() {
    // What may be opened is shared by all threads of a process.
    if !is_alone() {
        return;
    }
    let (mut world, forge) = world();
    put_and_commit(&world, &forge, &objects(1, 3));
    let scrub = |world: &World| {
        let none = Rlimit { current: Some(0), maximum: getrlimit(Resource::Nofile).maximum };
        let before = getrlimit(Resource::Nofile);
        let report = world.handle().scrub(&mut |_| setrlimit(Resource::Nofile, none).unwrap());
        setrlimit(Resource::Nofile, before).unwrap();
        report
    };
    let error = scrub(&world).unwrap_err().to_string();
    assert!(error.contains("open files"), "{error}");

    let strange = world.dir().join("packs/00/strange");
    fs::create_dir_all(strange.parent().unwrap()).unwrap();
    fs::write(&strange, "no pack").unwrap();
    world.restart();
    match scrub(&world).unwrap_err() {
        RepositoryError::Damaged { what, reason } => {
            assert_eq!(Path::new(&what), strange);
            assert!(reason.contains("1 found") && reason.contains("open files"), "{reason}");
        }
        other => panic!("{other}"),
    }
}
