//! The lease, lapsing sessions, and damage that scrub and readers meet.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use holdall_format::{BlockKind, ObjectId, RecordKind, SessionId, StoredRecord, TableEntry};
use holdall_protocol::contract::{ContractWorld, Forge};
use holdall_protocol::{
    CommitAnswer, NewRepository, OwnedRepository, Repository, RepositoryError, ScrubDamage,
    SessionPurpose,
};
use holdall_repository::{EmbeddedRepository, Store};

use crate::world::{MACHINE, MACHINE_SEED, World, signer};

const WEEK_NS: i64 = 7 * 24 * 3600 * 1_000_000_000;

fn id(name: &str) -> ObjectId {
    ObjectId::from_bytes(*blake3::hash(name.as_bytes()).as_bytes())
}

fn made() -> (World, Forge) {
    let world = World::new();
    let forge = Forge::new(1, MACHINE, &MACHINE_SEED);
    world.handle().create(&forge.new_repository()).unwrap();
    (world, forge)
}

fn open_session(world: &World) -> SessionId {
    let purpose = SessionPurpose::Backup { parents: vec![] };
    world.handle().open_session(&purpose).unwrap().session
}

/// A snapshot whose root is `root`, over chunks in blocks of 5 MiB: enough to close a pack.
fn big_snapshot(world: &World, forge: &Forge) -> Vec<(ObjectId, Bytes)> {
    let session = open_session(world);
    let mut blocks = Vec::new();
    for number in 0..11 {
        let chunk = id(&format!("chunk {number}"));
        let block = forge.chunks_of_bytes(&[chunk], 5 << 20);
        world.handle().put_blocks(&session, std::slice::from_ref(&block)).unwrap();
        blocks.push((chunk, block));
    }
    let chunks: Vec<ObjectId> = blocks.iter().map(|(chunk, _)| *chunk).collect();
    world.handle().put_blocks(&session, &[forge.nodes(&[(id("root"), &chunks)])]).unwrap();
    let record = forge.record(RecordKind::Snapshot, id("root"), None);
    let answer = world.handle().commit(&session, &record).unwrap();
    assert!(matches!(answer, CommitAnswer::Committed(_)));
    blocks
}

fn only_pack(world: &World) -> PathBuf {
    let folders = fs::read_dir(world.dir().join("packs")).unwrap();
    let mut packs = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    let pack = packs.next().unwrap().unwrap().path();
    assert!(packs.next().is_none());
    pack
}

#[test]
fn while_somebody_writes_others_neither_write_nor_read() {
    let (world, _) = made();
    let session = open_session(&world);
    for open in [Store::open, Store::open_to_read] {
        let answer = open(&world.dir(), &world.cache_dir(), signer(), world.clock.clone());
        assert!(matches!(answer.err(), Some(RepositoryError::InUse { .. })));
    }
    world.handle().close_session(&session).unwrap();
}

#[test]
fn readers_share_and_keep_writers_out() {
    let (world, forge) = made();
    big_snapshot(&world, &forge);
    let mut world = world;
    world.close();
    let open = |how: OpenHow| how(&world.dir(), &world.cache_dir(), signer(), world.clock.clone());
    type OpenHow = fn(
        &std::path::Path,
        &std::path::Path,
        std::sync::Arc<dyn holdall_format::ReceiptSigner>,
        std::sync::Arc<dyn holdall_sys::Clock>,
    ) -> Result<std::sync::Arc<Store>, RepositoryError>;
    let first = open(Store::open_to_read).unwrap();
    let second = open(Store::open_to_read).unwrap();
    assert!(matches!(open(Store::open).err(), Some(RepositoryError::InUse { .. })));
    let key = holdall_protocol::contract::TestKey::from_seed(&MACHINE_SEED).public();
    for store in [&first, &second] {
        let reader = store.for_machine(MACHINE, key);
        let session = reader.open_session(&SessionPurpose::Read).unwrap().session;
        assert_eq!(
            reader.fetch_objects(&session, &[id("root"), id("chunk 3")], 0).unwrap().blocks.len(),
            2
        );
        let purpose = SessionPurpose::Backup { parents: vec![] };
        let refused = reader.open_session(&purpose);
        assert!(matches!(refused, Err(RepositoryError::NotAllowed { .. })));
        assert_eq!(reader.scrub(&mut |_| {}).unwrap().damaged, []);
    }
    drop((first, second));
    assert!(open(Store::open).is_ok());
}

/// Has the lease be that of another computer, which did not renew it.
fn lease_goes_stale(world: &World) {
    let lease = holdall_testkit::only_file(&world.dir().join("lease"), "", "");
    fs::write(&lease, "holdall lease, version 1\nhost attic\nprocess \nsince 7\n").unwrap();
    let file = fs::File::options().write(true).open(&lease).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
}

/// Whoever slept may append to its tail until the end of time. Nobody else ever does, however often taking
/// over fails in the middle.
#[test]
fn a_tail_of_one_who_sleeps_is_left_behind_even_if_taking_over_fails() {
    let (mut world, forge) = made();
    world.close();
    // As on a share: who writes must have the highest number.
    fs::create_dir(world.dir().join("lease")).unwrap();
    world.restart();
    let session = open_session(&world);
    world.handle().put_blocks(&session, &[forge.chunks(&[id("chunk")])]).unwrap();
    world.close();
    let tail = || world.tail_file("chunks.", ".payload");
    let open =
        || Store::open(&world.dir(), &world.cache_dir(), signer(), world.clock.clone()).map(drop);
    let of_the_sleeper = tail();

    lease_goes_stale(&world);
    let folder = world.dir().join("superseded");
    fs::remove_dir(&folder).unwrap();
    fs::write(&folder, "").unwrap();
    open().unwrap_err();
    fs::remove_file(&folder).unwrap();
    assert_eq!(tail(), of_the_sleeper);

    open().unwrap();
    let copied = tail();
    assert_ne!(copied, of_the_sleeper);
    // Nobody slept behind that: there is no need to copy it again.
    open().unwrap();
    assert_eq!(tail(), copied);
}

#[test]
fn a_read_session_survives_that_the_same_process_begins_to_write() {
    let (mut world, forge) = made();
    big_snapshot(&world, &forge);
    world.restart();
    let reading = world.handle().open_session(&SessionPurpose::Read).unwrap().session;
    let writing = open_session(&world);
    world.handle().put_blocks(&writing, &[forge.chunks(&[id("new")])]).unwrap();
    assert_eq!(world.handle().fetch_objects(&reading, &[id("root")], 0).unwrap().blocks.len(), 1);
}

#[test]
fn what_was_put_and_never_committed_lapses_after_seven_days() {
    let (mut world, forge) = made();
    let session = open_session(&world);
    let block = forge.chunks(&[id("chunk")]);
    world.handle().put_blocks(&session, &[block]).unwrap();
    world.clock.advance_ns(WEEK_NS);
    world.restart();
    assert_eq!(world.handle().missing(&session, &[id("chunk")]).unwrap(), [false]);
    world.clock.advance_ns(WEEK_NS + 1);
    let lapsed = world.handle().missing(&session, &[id("chunk")]);
    assert!(matches!(lapsed, Err(RepositoryError::NoSession { .. })));
    let session = open_session(&world);
    assert_eq!(world.handle().missing(&session, &[id("chunk")]).unwrap(), [true]);
}

#[test]
fn a_clock_that_is_set_ahead_ends_neither_sessions_nor_unfinished_backups() {
    let (world, forge) = made();
    world.clock.advance_ns(holdall_repository::EARLIEST_NS);
    let session = open_session(&world);
    let (chunk, root) = (id("chunk"), id("root"));
    let blocks = [forge.chunks(&[chunk]), forge.nodes(&[(root, &[chunk])])];
    world.handle().put_blocks(&session, &blocks).unwrap();
    let record = forge.record(RecordKind::Checkpoint, root, None);
    world.handle().commit(&session, &record).unwrap();
    let later = id("later");
    world.handle().put_blocks(&session, &[forge.chunks(&[later])]).unwrap();
    let are_missing = |session| world.handle().missing(session, &[chunk, root, later]).unwrap();
    world.clock.set_ahead_ns(52 * WEEK_NS);
    world.handle().prune(false).unwrap();
    assert_eq!(are_missing(&session), [false; 3]);
    // Once that time has passed, both are over.
    world.clock.advance_ns(52 * WEEK_NS);
    assert!(world.handle().missing(&session, &[chunk]).is_err());
    world.handle().prune(false).unwrap();
    assert_eq!(are_missing(&open_session(&world)), [true; 3]);
}

#[test]
fn a_repository_is_not_made_among_other_files() {
    let world = World::new();
    let forge = Forge::new(1, MACHINE, &MACHINE_SEED);
    fs::create_dir_all(world.dir()).unwrap();
    fs::write(world.dir().join("holiday.jpg"), b"").unwrap();
    let answer = world.handle().create(&forge.new_repository());
    assert!(matches!(answer, Err(RepositoryError::Refused { .. })));
    fs::remove_file(world.dir().join("holiday.jpg")).unwrap();
    fs::write(world.dir().join("config"), b"[core]").unwrap();
    let answer = world.handle().create(&forge.new_repository());
    assert!(matches!(answer, Err(RepositoryError::Refused { .. })), "it may be anybody's");
    // An attempt that a crash cut short is begun again.
    fs::write(world.dir().join("config"), forge.new_repository().config).unwrap();
    world.handle().create(&forge.new_repository()).unwrap();
    let described = world.handle().describe().unwrap();
    assert_eq!(described.config, forge.config());
}

#[test]
fn a_configuration_that_was_swapped_is_damage() {
    let (world, forge) = made();
    let NewRepository { config, .. } = forge.new_repository();
    fs::write(world.dir().join("config"), &config[1..]).unwrap();
    assert_eq!(world.handle().describe().unwrap().config, config, "there is a second one");
    fs::remove_dir_all(world.dir().join("spare")).unwrap();
    assert!(matches!(world.handle().describe(), Err(RepositoryError::Damaged { .. })));
}

#[test]
fn a_damaged_block_is_named_and_a_second_copy_stands_in() {
    let (mut world, forge) = made();
    let blocks = big_snapshot(&world, &forge);
    let pack = only_pack(&world);
    let file = fs::OpenOptions::new().write(true).open(&pack).unwrap();
    file.write_all_at(b"rot", (5 << 20) + 1000).unwrap();
    let (chunk, block) = &blocks[1];

    let session = open_session(&world);
    let answer = world.handle().fetch_objects(&session, &[*chunk], 0);
    assert!(matches!(answer, Err(RepositoryError::Damaged { .. })), "{answer:?}");
    let report = world.handle().scrub(&mut |_| {}).unwrap();
    let [ScrubDamage::Block { block: name, pack: Some(_), .. }] = &report.damaged[..] else {
        panic!("{:?}", report.damaged)
    };
    assert_eq!(name.as_bytes(), blake3::hash(block).as_bytes());
    let mut page = world.handle().read_blocks(&session, 0).unwrap();
    while page.damaged.is_empty() {
        page = world.handle().read_blocks(&session, page.next.unwrap()).unwrap();
    }
    let [ScrubDamage::Block { block: read, pack: Some(_), .. }] = &page.damaged[..] else {
        panic!("{:?}", page.damaged)
    };
    assert_eq!(read, name);

    let copy = forge.chunks(&[*chunk]);
    world.handle().put_blocks(&session, std::slice::from_ref(&copy)).unwrap();
    world.restart();
    let fetched = world.handle().fetch_objects(&session, &[*chunk], 0).unwrap().blocks;
    assert_eq!(fetched, [copy]);
}

#[test]
fn a_pack_that_is_gone_or_unreadable_is_told_and_what_it_held_is_missing() {
    for cut in [None, Some(100u64), Some(20_000_000)] {
        let (mut world, forge) = made();
        let blocks = big_snapshot(&world, &forge);
        let pack = only_pack(&world);
        match cut {
            None => fs::remove_file(&pack).unwrap(),
            Some(length) => {
                fs::OpenOptions::new().write(true).open(&pack).unwrap().set_len(length).unwrap();
            }
        }
        let told = world.handle().scrub(&mut |_| {}).unwrap();
        assert!(matches!(told.damaged[0], ScrubDamage::Pack { .. }), "{:?}", told.damaged);

        world.restart();
        let report = world.handle().scrub(&mut |_| {}).unwrap();
        let missing =
            report.damaged.iter().filter(|damage| matches!(damage, ScrubDamage::Missing { .. }));
        assert_eq!(missing.count(), 10, "{:?}", report.damaged);
        let session = open_session(&world);
        let ids = [blocks[0].0, blocks[10].0, id("root")];
        assert_eq!(world.handle().missing(&session, &ids).unwrap(), [true, false, true]);
        // Once its objects are put again and a commit reached them, everything is whole.
        for (chunk, _) in &blocks[..10] {
            world.handle().put_blocks(&session, &[forge.chunks(&[*chunk])]).unwrap();
        }
        let head = world.handle().open_session(&SessionPurpose::Read).unwrap().head.unwrap();
        let record = forge.record(RecordKind::Snapshot, id("root"), Some((head, 1)));
        let answer = world.handle().commit(&session, &record).unwrap();
        assert!(matches!(answer, CommitAnswer::Committed(_)));
        world.restart();
        let session = open_session(&world);
        assert_eq!(world.handle().missing(&session, &ids).unwrap(), [false; 3]);
    }
}

/// Commits the root of the first snapshot again.
fn commit_again(world: &World, forge: &Forge, session: &SessionId) -> CommitAnswer {
    let head = world.handle().open_session(&SessionPurpose::Read).unwrap().head.unwrap();
    let record = forge.record(RecordKind::Snapshot, id("root"), Some((head, 1)));
    world.handle().commit(session, &record).unwrap()
}

#[test]
fn a_commit_that_meets_a_damaged_index_has_it_rebuilt() {
    let (mut world, forge) = made();
    big_snapshot(&world, &forge);
    world.restart();
    let session = open_session(&world);
    let runs = || -> Vec<PathBuf> {
        let files = fs::read_dir(world.cache_dir()).unwrap().map(|file| file.unwrap().path());
        let mut runs: Vec<_> = files.filter(|path| !path.ends_with("manifest")).collect();
        runs.sort();
        runs
    };
    let before = runs();
    for path in &before {
        let length = fs::metadata(path).unwrap().len() as usize;
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        file.write_all_at(&vec![0xa5; length], 0).unwrap();
    }
    let head = world.handle().open_session(&SessionPurpose::Read).unwrap().head.unwrap();
    let record = forge.record(RecordKind::Snapshot, id("chunk 0"), Some((head, 1)));
    let answer = world.handle().commit(&session, &record);
    assert!(matches!(answer, Err(RepositoryError::Refused { .. })), "{answer:?}");
    assert_ne!(runs(), before, "the index was made anew");
    assert!(matches!(commit_again(&world, &forge, &session), CommitAnswer::Committed(_)));
}

#[test]
fn what_reached_blocks_that_are_lost_is_no_longer_closed() {
    let shorten = |path: PathBuf| {
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        file.set_len(file.metadata().unwrap().len() - 1).unwrap();
    };
    let damages: [&dyn Fn(&World); 7] = [
        &|world| {
            fs::remove_file(world.tail_file("chunks", "payload")).unwrap();
            fs::remove_file(world.tail_file("chunks", "journal")).unwrap();
        },
        &|world| fs::remove_file(world.tail_file("chunks", "payload")).unwrap(),
        &|world| fs::remove_file(world.tail_file("chunks", "journal")).unwrap(),
        // As of a tail that was torn while it was made.
        &|world| fs::write(world.tail_file("chunks", "journal"), b"").unwrap(),
        // The last block of a tail, which a crash may leave like this before it is acknowledged.
        &|world| flip_last_byte(&world.tail_file("chunks", "payload")),
        &|world| shorten(world.tail_file("chunks", "payload")),
        &|world| shorten(world.tail_file("chunks", "journal")),
    ];
    for (number, damage) in damages.into_iter().enumerate() {
        let (mut world, forge) = made();
        big_snapshot(&world, &forge);
        world.close();
        let cached = world.cached();
        damage(&world);
        world.restart();
        // Whoever opens it finds out, and no index from before is believed from then on.
        open_session(&world);
        world.close_with_cache(&cached);
        world.restart();
        let session = open_session(&world);
        let CommitAnswer::Missing(missing) = commit_again(&world, &forge, &session) else {
            panic!("{number}: the last chunk is gone")
        };
        assert_eq!(missing, [id("chunk 10")], "{number}");
        let again = forge.chunks(&[id("chunk 10")]);
        world.handle().put_blocks(&session, &[again]).unwrap();
        assert!(matches!(commit_again(&world, &forge, &session), CommitAnswer::Committed(_)));
    }
}

/// A snapshot of one chunk, with the cache that knows all of it closed in tails.
fn small_snapshot(world: &mut World, forge: &Forge) -> Vec<(PathBuf, Vec<u8>)> {
    let session = open_session(world);
    world.handle().put_blocks(&session, &[forge.chunks(&[id("a")])]).unwrap();
    world.handle().put_blocks(&session, &[forge.nodes(&[(id("root"), &[id("a")])])]).unwrap();
    let record = forge.record(RecordKind::Snapshot, id("root"), None);
    let answer = world.handle().commit(&session, &record).unwrap();
    assert!(matches!(answer, CommitAnswer::Committed(_)));
    world.close();
    world.cached()
}

fn assert_is_missed(world: &World, forge: &Forge) {
    let session = open_session(world);
    let answer = commit_again(world, forge, &session);
    assert!(matches!(&answer, CommitAnswer::Missing(ids) if *ids == [id("a")]), "{answer:?}");
}

/// As after its file system was set back, and the cache lies on another.
#[test]
fn what_reached_a_tail_that_is_what_it_was_before_is_no_longer_closed() {
    let (mut world, forge) = made();
    let session = open_session(&world);
    world.handle().put_blocks(&session, &[forge.chunks(&[id("first")])]).unwrap();
    world.close();
    let earlier = ["payload", "journal"].map(|ends| world.tail_file("chunks", ends));
    let earlier = earlier.map(|path| (path.clone(), fs::read(path).unwrap()));
    world.restart();
    let cached = small_snapshot(&mut world, &forge);
    earlier.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    world.close_with_cache(&cached);
    world.restart();
    assert_is_missed(&world, &forge);
}

#[test]
fn what_reached_a_pack_that_came_and_went_behind_the_cache_is_no_longer_closed() {
    let (mut world, forge) = made();
    let cached = small_snapshot(&mut world, &forge);
    world.restart();
    let session = open_session(&world);
    for number in 0..11 {
        let chunk = id(&format!("chunk {number}"));
        let block = forge.chunks_of_bytes(&[chunk], 5 << 20);
        world.handle().put_blocks(&session, &[block]).unwrap();
    }
    world.close();
    fs::remove_file(only_pack(&world)).unwrap();
    world.close_with_cache(&cached);
    world.restart();
    assert_is_missed(&world, &forge);
}

/// They were stored at once, so the journal does not say of any that it was durable.
#[test]
fn blocks_behind_one_that_is_damaged_stay_where_a_record_may_count_on_them() {
    let (mut world, forge) = made();
    let session = open_session(&world);
    let chunks = ["a", "b", "c"].map(id);
    let blocks = chunks.map(|chunk| forge.chunks(&[chunk]));
    world.handle().put_blocks(&session, &blocks).unwrap();
    world.handle().put_blocks(&session, &[forge.nodes(&[(id("root"), &chunks)])]).unwrap();
    let record = forge.record(RecordKind::Snapshot, id("root"), None);
    let answer = world.handle().commit(&session, &record).unwrap();
    assert!(matches!(answer, CommitAnswer::Committed(_)));
    world.close();
    flip_first_byte(&world.tail_file("chunks", "payload"));
    let cache = tempfile::tempdir().unwrap();
    let opened =
        Store::open_to_read(&world.dir(), cache.path(), signer(), world.clock.clone()).unwrap();
    let reader = Arc::new(opened).for_machine(MACHINE, forge.key.public());
    let session = reader.open_session(&SessionPurpose::Read).unwrap().session;
    assert_eq!(reader.fetch_objects(&session, &chunks[1..], 0).unwrap().blocks, blocks[1..]);
    drop(reader);
    for _ in 0..2 {
        world.restart();
        let session = open_session(&world);
        assert_eq!(world.handle().missing(&session, &chunks).unwrap(), [true, false, false]);
        let fetched = world.handle().fetch_objects(&session, &chunks[1..], 0).unwrap();
        assert_eq!(fetched.blocks, blocks[1..]);
        world.close();
    }
}

fn flip_first_byte(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    bytes[0] ^= 1;
    fs::write(path, bytes).unwrap();
}

fn flip_last_byte(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_pack_that_gives_an_error_when_it_is_read_does_not_keep_the_others_from_use() {
    let (mut world, forge) = made();
    big_snapshot(&world, &forge);
    let pack = only_pack(&world);
    world.close();
    fs::remove_file(&pack).unwrap();
    fs::create_dir(&pack).unwrap();
    // Long enough for a trailer, on file systems where a directory is as long as its names.
    (0..50).for_each(|name| fs::write(pack.join(name.to_string()), b"").unwrap());
    fs::write(world.dir().join("packs/no folder"), b"").unwrap();
    fs::remove_dir_all(world.cache_dir()).unwrap();
    world.restart();
    let session = open_session(&world);
    let ids = [id("chunk 0"), id("chunk 10")];
    assert_eq!(world.handle().missing(&session, &ids).unwrap(), [true, false]);
    assert!(matches!(commit_again(&world, &forge, &session), CommitAnswer::Missing(_)));
}

#[test]
fn a_node_whose_pack_can_not_be_read_is_healed_by_another_copy() {
    let (mut world, forge) = made();
    let session = open_session(&world);
    let node = |name: &str, refs: Vec<ObjectId>, bytes: usize| {
        let entries = vec![TableEntry { id: id(name), refs }];
        forge.block(BlockKind::Nodes, entries, bytes)
    };
    let mut leaves = Vec::new();
    for number in 0..11 {
        let name = format!("leaf {number}");
        world.handle().put_blocks(&session, &[node(&name, vec![], 5 << 20)]).unwrap();
        leaves.push(id(&name));
    }
    leaves.sort();
    world.handle().put_blocks(&session, &[node("root", leaves, 100)]).unwrap();
    let record = forge.record(RecordKind::Snapshot, id("root"), None);
    let answer = world.handle().commit(&session, &record).unwrap();
    assert!(matches!(answer, CommitAnswer::Committed(_)));
    let pack = only_pack(&world);
    world.restart();
    let session = open_session(&world);
    fs::OpenOptions::new().write(true).open(&pack).unwrap().set_len(100).unwrap();
    let copy = node("leaf 0", vec![], 100);
    world.handle().put_blocks(&session, std::slice::from_ref(&copy)).unwrap();
    let fetched = world.handle().fetch_objects(&session, &[id("leaf 0")], 0).unwrap().blocks;
    assert_eq!(fetched, [copy]);
}

#[test]
fn a_damaged_record_is_told_and_the_others_are_not_lost() {
    let (mut world, forge) = made();
    big_snapshot(&world, &forge);
    let record = fs::read_dir(world.dir().join("records")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&record).unwrap();
    bytes[200] ^= 1;
    fs::write(&record, bytes).unwrap();
    world.restart();
    let session = open_session(&world);
    assert_eq!(world.handle().fetch_objects(&session, &[id("root")], 0).unwrap().blocks.len(), 1);
    let report = world.handle().scrub(&mut |_| {}).unwrap();
    assert!(matches!(report.damaged[..], [ScrubDamage::Record { .. }]), "{:?}", report.damaged);
    let query =
        holdall_protocol::RecordQuery { limit: 10, ..holdall_protocol::RecordQuery::default() };
    let listed = world.handle().records(&query).unwrap();
    assert!(StoredRecord::decode(&listed[0].stored).is_err(), "it is listed as it is");
}

/// File managers leave files of their own in the folders that they show.
#[test]
fn a_name_among_records_that_is_none_hides_no_lost_one() {
    let (mut world, forge) = made();
    let session = open_session(&world);
    world.handle().put_blocks(&session, &[forge.nodes(&[(id("root"), &[])])]).unwrap();
    let first = forge.record(RecordKind::Snapshot, id("root"), None);
    world.handle().commit(&session, &first).unwrap();
    let lost = world.handle().open_session(&SessionPurpose::Read).unwrap().head.unwrap();
    let folder = world.dir().join("records");
    let file = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    commit_again(&world, &forge, &open_session(&world));
    fs::remove_file(file).unwrap();
    fs::write(folder.join(".DS_Store"), "").unwrap();
    world.restart();
    let damaged = world.handle().scrub(&mut |_| {}).unwrap().damaged;
    let told = |what: &str| {
        let is_told = |damage: &ScrubDamage| matches!(damage, ScrubDamage::Record { reason, .. } if reason.contains(what));
        assert!(damaged.iter().any(is_told), "{what}: {damaged:?}");
    };
    told("not the name of a record");
    told(&format!("record {lost}, which "));
}

#[test]
fn a_tail_that_can_not_be_read_keeps_nothing_from_opening() {
    for (kind, file) in [("nodes", "journal"), ("nodes", "payload"), ("chunks", "payload")] {
        let (mut world, forge) = made();
        let session = open_session(&world);
        let before = [forge.chunks(&[id("chunk")]), forge.nodes(&[(id("root"), &[id("chunk")])])];
        world.handle().put_blocks(&session, &before).unwrap();
        let record = forge.record(RecordKind::Snapshot, id("root"), None);
        world.handle().commit(&session, &record).unwrap();
        world.close();
        let (path, kept) = (world.tail_file(kind, file), world.dir().join("kept"));
        let lost = path.file_name().unwrap().to_str().unwrap();
        fs::rename(&path, &kept).unwrap();
        // What has the name is there and cannot be read, as on a disk that fails.
        fs::create_dir(&path).unwrap();
        world.restart();
        let session = open_session(&world);
        world.handle().put_blocks(&session, &[forge.chunks(&[id("new")])]).unwrap();
        let report = world.handle().scrub(&mut |_| {}).unwrap();
        let is_named = |damage: &ScrubDamage| match damage {
            ScrubDamage::Pack { pack, reason } => format!("{pack} {reason}").contains(lost),
            _ => false,
        };
        assert!(report.damaged.iter().any(is_named), "{:?}", report.damaged);

        world.close();
        fs::remove_dir(&path).unwrap();
        fs::rename(&kept, &path).unwrap();
        world.restart();
        let session = open_session(&world);
        let ids = [id("root"), id("chunk"), id("new")];
        assert_eq!(world.handle().missing(&session, &ids).unwrap(), [false; 3], "{lost}");
        assert_eq!(world.handle().scrub(&mut |_| {}).unwrap().damaged, []);
    }
}

#[test]
fn a_journal_whose_payloads_are_gone_is_told_once_and_put_aside() {
    let (mut world, forge) = made();
    let session = open_session(&world);
    world.handle().put_blocks(&session, &[forge.chunks(&[id("chunk")])]).unwrap();
    world.close();
    fs::remove_file(world.tail_file("chunks", "payload")).unwrap();
    world.restart();
    open_session(&world);
    assert!(!world.handle().scrub(&mut |_| {}).unwrap().damaged.is_empty());
    world.restart();
    let session = open_session(&world);
    assert_eq!(world.handle().scrub(&mut |_| {}).unwrap().damaged, []);
    assert_eq!(world.handle().missing(&session, &[id("chunk")]).unwrap(), [true]);
}

#[test]
fn a_scrub_ends_when_it_is_asked_to() {
    let (mut world, forge) = made();
    big_snapshot(&world, &forge);
    world.close();
    let key = holdall_protocol::contract::TestKey::from_seed(&MACHINE_SEED).public();
    let (dir, cache, clock) = (world.dir(), world.cache_dir(), world.clock.clone());
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let repository = EmbeddedRepository::at(&dir, &cache, MACHINE, key, signer(), clock);
    let repository = repository.stopped_by(stop.clone());
    let mut told = 0;
    let answer = repository.scrub(&mut |_| {
        told += 1;
        stop.store(true, std::sync::atomic::Ordering::Release);
    });
    assert!(matches!(answer, Err(RepositoryError::Interrupted)), "{answer:?}");
    assert!(told <= 3, "{told} blocks and packs were read after it");
}

#[test]
fn many_threads_that_fill_packs_lose_nothing() {
    let (mut world, forge) = made();
    let session = open_session(&world);
    let handle = world.handle();
    let forge_ref = &forge;
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (handle, tell) = (handle.clone(), tell.clone());
            scope.spawn(move || {
                for number in 0..30 {
                    let chunks: Vec<ObjectId> =
                        (0..50).map(|nth| id(&format!("{thread} {number} {nth}"))).collect();
                    let node = id(&format!("node {thread} {number}"));
                    let block = forge_ref.chunks_of_bytes(&chunks, 1 << 20);
                    let nodes = forge_ref.nodes(&[(node, &chunks)]);
                    handle.put_blocks(&session, &[block, nodes]).unwrap();
                    if number % 10 == 0 {
                        assert!(!handle.missing(&session, &chunks).unwrap().contains(&true));
                        tell.send(node).unwrap();
                    }
                }
            });
        }
        drop(tell);
        // Records come meanwhile: marks are carried from tails into packs and merged runs.
        for (sequence, node) in (1u64..).zip(told) {
            let mut head = forge.record_head(RecordKind::Checkpoint, node, None);
            head.sequence = sequence;
            head.previous = handle
                .open_session(&SessionPurpose::Read)
                .unwrap()
                .head
                .unwrap_or(holdall_format::RecordHash::from_bytes([0; 32]));
            let answer = handle.commit(&session, &forge.sign(head)).unwrap();
            assert!(matches!(answer, CommitAnswer::Committed(_)));
        }
    });
    drop(handle);
    for _ in 0..2 {
        let report = world.handle().scrub(&mut |_| {}).unwrap();
        assert_eq!(report.damaged, []);
        assert_eq!((report.blocks, report.objects), (240, 120 * 51));
        world.restart();
    }
}
