//! A process or a computer that stops at any moment: what was acknowledged is there again, and what
//! was not is never half there.
//!
//! After every acknowledgement the directory is copied, as a disk would keep it. Later writes that
//! were not acknowledged are then imitated: the ends of tails are cut, filled with garbage or with a
//! part of what came next.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use holdall_format::{
    Block, BlockHeader, BlockKind, BlockName, Footer, FooterBlock, ObjectId, PACK_TRAILER_BYTES,
    Record, RecordHash, RecordKind, SessionId, Table, TableEntry, Trailer,
};
use holdall_protocol::contract::{ContractWorld, Forge};
use holdall_protocol::{CommitAnswer, RecordQuery, Repository, RepositoryError, SessionPurpose};
use proptest::prelude::*;

use crate::world::{MACHINE, MACHINE_SEED, World};

/// The directory as it was when something was acknowledged, and all that was by then.
#[derive(Clone)]
struct Moment {
    dir: std::sync::Arc<tempfile::TempDir>,
    blocks: Vec<(ObjectId, Bytes)>,
    records: Vec<Bytes>,
}

fn id(number: u32) -> ObjectId {
    ObjectId::from_bytes(*blake3::hash(&number.to_le_bytes()).as_bytes())
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A repository that is written to, and photographed after each acknowledgement.
struct Script {
    world: World,
    forge: Forge,
    session: SessionId,
    head: Option<(RecordHash, u64)>,
    now: Moment,
    moments: Vec<Moment>,
    next_id: u32,
}

impl Script {
    fn new() -> Self {
        let world = World::new();
        let forge = Forge::new(1, MACHINE, &MACHINE_SEED);
        world.handle().create(&forge.new_repository()).unwrap();
        let session = open_session(&*world.handle());
        let dir = std::sync::Arc::new(tempfile::tempdir().unwrap());
        let now = Moment { dir, blocks: Vec::new(), records: Vec::new() };
        Self { world, forge, session, head: None, now, moments: Vec::new(), next_id: 0 }
    }

    fn photograph(&mut self) {
        self.now.dir = std::sync::Arc::new(tempfile::tempdir().unwrap());
        copy_dir(&self.world.dir(), self.now.dir.path());
        self.moments.push(self.now.clone());
    }

    fn put(&mut self, payload_bytes: usize) -> ObjectId {
        self.next_id += 2;
        let (chunk, node) = (id(self.next_id), id(self.next_id + 1));
        let chunks = self.forge.chunks_of_bytes(&[chunk], payload_bytes);
        let nodes = self.forge.nodes(&[(node, &[chunk])]);
        let blocks = [chunks.clone(), nodes.clone()];
        self.world.handle().put_blocks(&self.session, &blocks).unwrap();
        self.now.blocks.extend([(chunk, chunks), (node, nodes)]);
        self.photograph();
        node
    }

    fn commit(&mut self, root: ObjectId, kind: RecordKind) {
        let record = self.forge.record(kind, root, self.head);
        let answer = self.world.handle().commit(&self.session, &record).unwrap();
        let CommitAnswer::Committed(stored) = answer else { panic!("all of it was put") };
        let decoded = Record::decode(&record).unwrap();
        self.head = Some((decoded.hash(), decoded.head.sequence));
        self.now.records.push(stored);
        self.photograph();
        if kind == RecordKind::Snapshot {
            self.session = open_session(&*self.world.handle());
        }
    }
}

fn open_session(repository: &dyn Repository) -> SessionId {
    let purpose = SessionPurpose::Backup { parents: vec![] };
    repository.open_session(&purpose).unwrap().session
}

/// Puts, checkpoints and snapshots; big enough puts that packs are closed on the way.
fn script() -> Vec<Moment> {
    let mut script = Script::new();
    let first = script.put(5000);
    script.put(100);
    script.commit(first, RecordKind::Checkpoint);
    let second = script.put(9000);
    script.commit(second, RecordKind::Snapshot);
    for _ in 0..12 {
        script.put(5 << 20);
    }
    let last = script.put(200);
    script.commit(last, RecordKind::Snapshot);
    script.put(300);
    script.moments
}

/// Opens what is in `world` and checks that everything of `moment` is there.
fn assert_whole(world: &World, moment: &Moment) {
    let repository = world.handle();
    let session = open_session(&*repository);
    for (object, block) in &moment.blocks {
        let fetched = repository.fetch_objects(&session, &[*object], 0).unwrap().blocks;
        assert_eq!(fetched, std::slice::from_ref(block));
    }
    let query = RecordQuery { limit: 100, ..RecordQuery::default() };
    let listed = repository.records(&query).unwrap();
    assert!(listed.iter().map(|record| &record.stored).eq(&moment.records));
    let report = repository.scrub(&mut |_| {}).unwrap();
    assert_eq!(report.damaged, []);

    // What was put and not reached by a commit is there too, since its session has not lapsed.
    let ids: Vec<ObjectId> = moment.blocks.iter().map(|(object, _)| *object).collect();
    let from = ids.len().saturating_sub(2);
    if moment.records.is_empty() {
        assert_eq!(repository.missing(&session, &ids[from..]).unwrap(), [false; 2]);
    }
}

/// A world whose repository is a copy of that moment's.
fn world_of(moment: &Moment) -> World {
    let world = World::new();
    copy_dir(moment.dir.path(), &world.dir());
    world
}

#[test]
fn whenever_it_stops_everything_acknowledged_is_there_and_nothing_else_is_broken() {
    let moments = script();
    for moment in &moments {
        assert_whole(&world_of(moment), moment);
    }
}

#[test]
fn a_repository_goes_on_after_every_stop() {
    for moment in &script() {
        let mut world = world_of(moment);
        let session = open_session(&*world.handle());
        let forge = Forge::new(1, MACHINE, &MACHINE_SEED);
        let chunk = id(1_000_000);
        // Another salt than the blocks of the script had.
        let block = forge.chunks_of_bytes(&[chunk, id(1_000_001)], 77);
        world.handle().put_blocks(&session, std::slice::from_ref(&block)).unwrap();
        world.restart();
        let session = open_session(&*world.handle());
        let fetched = world.handle().fetch_objects(&session, &[chunk], 0).unwrap().blocks;
        assert_eq!(fetched, [block]);
        assert_whole(&world, moment);
    }
}

/// Where a journal's first entry begins.
const JOURNAL_FRONT_BYTES: usize = 88;

/// Tails of a repository: pairs of payload and journal.
fn tails(dir: &Path) -> Vec<(std::path::PathBuf, std::path::PathBuf)> {
    let entries = fs::read_dir(dir.join("tails")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let journals = paths.filter(|path| path.extension().is_some_and(|end| end == "journal"));
    journals.map(|path| (path.with_extension("payload"), path)).collect()
}

#[test]
fn unacknowledged_ends_of_tails_are_cut_off() {
    let moments = script();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(24));
    // Pairs of moments: the disk kept a part of what was written from the first to the second.
    let strategy = (0..moments.len() - 1, any::<u16>(), any::<u16>(), 0u8..3);
    runner
        .run(&strategy, |(at, payload_cut, journal_cut, how)| {
            let (before, after) = (&moments[at], &moments[at + 1]);
            let world = world_of(before);
            for (payload, journal) in tails(&world.dir()) {
                let later =
                    |path: &Path| after.dir.path().join("tails").join(path.file_name().unwrap());
                for (path, cut) in [(&payload, payload_cut), (&journal, journal_cut)] {
                    let (mut bytes, begun) = (fs::read(path).unwrap(), fs::read(later(path)));
                    let kept = bytes.len();
                    let mut end = match (how, begun) {
                        (0, Ok(later)) if later.len() > kept => later[kept..].to_vec(),
                        (1, _) => vec![0; usize::from(cut)],
                        _ => blake3::hash(&cut.to_le_bytes()).as_bytes().repeat(9),
                    };
                    end.truncate(usize::from(cut));
                    bytes.extend(end);
                    fs::write(path, bytes).unwrap();
                }
            }
            // With a whole next entry in both files, more than was acknowledged may be there.
            let repository = world.handle();
            let session = open_session(&*repository);
            for (object, block) in &before.blocks {
                let fetched = repository.fetch_objects(&session, &[*object], 0).unwrap().blocks;
                prop_assert_eq!(&fetched, std::slice::from_ref(block));
            }
            prop_assert_eq!(repository.scrub(&mut |_| {}).unwrap().damaged, []);
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_pack_that_was_finished_but_not_published_is_published_at_the_next_start() {
    let moments = script();
    let with_pack = moments.iter().find(|moment| pack_of(moment.dir.path()).is_some()).unwrap();
    let at = moments.iter().position(|moment| std::ptr::eq(moment, with_pack)).unwrap();
    let before = &moments[at - 1];
    let (_, journal) = tails(before.dir.path())
        .into_iter()
        .find(|(path, _)| name_of(path).starts_with("chunks"))
        .unwrap();
    let pack = pack_of(with_pack.dir.path()).unwrap();

    // A footer with what the journal lists, behind the payloads of that.
    let finished = world_of(before);
    let payload = finished.dir().join("tails").join(name_of(&journal.with_extension("payload")));
    let mut bytes = fs::read(&payload).unwrap();
    let mut footer = footer_of(&fs::read(&pack).unwrap());
    footer.blocks.retain(|block| block.offset < bytes.len() as u64);
    bytes.extend_from_slice(&ended_by(&footer));
    fs::write(&payload, bytes).unwrap();
    assert_whole(&finished, before);
    assert!(pack_of(&finished.dir()).is_some());

    // The journal lost what nobody was promised, so the footer, whoever made it, adds to it.
    let torn = world_of(before);
    fs::copy(&pack, torn.dir().join("tails").join(name_of(&payload))).unwrap();
    assert_whole(&torn, before);
    assert!(pack_of(&torn.dir()).is_none());

    // Published, but the journal was not removed yet.
    let published = world_of(with_pack);
    fs::copy(&journal, published.dir().join("tails").join(name_of(&journal))).unwrap();
    assert_whole(&published, with_pack);
    assert!(!published.dir().join("tails").join(name_of(&journal)).exists());

    // A pack under a name that is not its own is no proof: the index does not take it either.
    let misnamed = world_of(with_pack);
    fs::copy(&journal, misnamed.dir().join("tails").join(name_of(&journal))).unwrap();
    let pack = pack_of(&misnamed.dir()).unwrap();
    let (rest, last) = pack.to_str().unwrap().split_at(pack.to_str().unwrap().len() - 1);
    fs::rename(&pack, format!("{rest}{}", if last == "0" { "1" } else { "0" })).unwrap();
    assert!(!misnamed.handle().scrub(&mut |_| {}).unwrap().damaged.is_empty());
    assert!(misnamed.dir().join("tails").join(name_of(&journal)).exists());
}

/// The footer at the end of a pack.
fn footer_of(pack: &[u8]) -> Footer {
    let (rest, trailer) = pack.split_at(pack.len() - PACK_TRAILER_BYTES);
    let footer_bytes = Trailer::decode(trailer).unwrap().footer_bytes as usize;
    let (payloads, footer) = rest.split_at(rest.len() - footer_bytes);
    Footer::decode(footer, payloads.len() as u64).unwrap()
}

/// What makes a pack of the payloads before it.
fn ended_by(footer: &Footer) -> Vec<u8> {
    let footer = footer.encode();
    [&footer[..], &Trailer::of(&footer).encode()].concat()
}

/// As a footer has a block.
fn listed(block: &Bytes, offset: u64, arrival: u64) -> FooterBlock {
    let decoded = Block::decode(&block[..]).unwrap();
    let name = BlockName::from_bytes(*blake3::hash(block).as_bytes());
    let (header, table) = (decoded.header().clone(), decoded.table());
    let table_bytes = table.encode(header.kind);
    FooterBlock { offset, arrival, name, header, table_bytes }
}

/// A block of that object with any payload, and a header that is otherwise as that one.
fn carrying(payload: &[u8], header: &BlockHeader, object: ObjectId) -> Bytes {
    let entries = vec![TableEntry { id: object, refs: vec![] }];
    let table = Table { entries }.encode(header.kind);
    let header = BlockHeader {
        table_bytes: table.len() as u32,
        table_hash: *blake3::hash(&table).as_bytes(),
        payload_bytes: payload.len() as u32,
        ..header.clone()
    };
    Bytes::from(Block::join(&header, &table, payload).unwrap().into_bytes())
}

/// Somebody puts a payload that ends as a pack does, knowing what lies before it, and the power is cut when the
/// journal has not yet the block that it is of.
#[test]
fn a_payload_that_ends_as_the_pack_would_adds_no_block_before_others() {
    let mut world = World::new();
    let forge = Forge::new(1, MACHINE, &MACHINE_SEED);
    world.handle().create(&forge.new_repository()).unwrap();
    let put = |world: &World, block: &Bytes| {
        let session = open_session(&*world.handle());
        world.handle().put_blocks(&session, std::slice::from_ref(block)).unwrap();
    };
    let (good, fake) =
        (forge.chunks_of_bytes(&[id(1)], 5000), forge.chunks_of_bytes(&[id(3)], 100));
    put(&world, &good);
    let (_, journal) = tails(&world.dir()).pop().unwrap();
    let journaled = fs::read(&journal).unwrap();
    // Behind the front, the entry's length and what was durable.
    let arrival =
        u64::from_le_bytes(journaled[JOURNAL_FRONT_BYTES + 4 + 8..][..8].try_into().unwrap());

    let offset = u64::from(Block::decode(&good[..]).unwrap().header().payload_bytes);
    let blocks = vec![listed(&good, 0, arrival), listed(&fake, offset, 0)];
    let header = blocks[1].header.clone();
    let (kind, repository) = (BlockKind::Chunks, header.repository);
    let end = ended_by(&Footer { kind, repository, random: [0; 32], blocks });
    let payload = [Block::decode(&fake[..]).unwrap().payload(), &end].concat();
    put(&world, &carrying(&payload, &header, id(2)));
    world.close();
    fs::write(&journal, journaled).unwrap();
    world.restart();

    assert!(pack_of(&world.dir()).is_none(), "it is no pack");
    let session = open_session(&*world.handle());
    let fetch = |number| world.handle().fetch_objects(&session, &[id(number)], 0);
    assert_eq!(fetch(1).unwrap().blocks, [good]);
    for number in [2, 3] {
        assert!(matches!(fetch(number), Err(RepositoryError::MissingObjects { .. })));
    }
    assert_eq!(world.handle().scrub(&mut |_| {}).unwrap().damaged, []);
}

#[test]
fn a_payload_that_looks_like_the_end_of_a_pack_takes_nothing_with_it() {
    let mut world = World::new();
    let forge = Forge::new(1, MACHINE, &MACHINE_SEED);
    world.handle().create(&forge.new_repository()).unwrap();
    let session = open_session(&*world.handle());
    let good = forge.chunks_of_bytes(&[id(1)], 5000);
    world.handle().put_blocks(&session, std::slice::from_ref(&good)).unwrap();

    // A footer that names one other block where the good one lies, as the next block's payload.
    let header = Block::decode(&good[..]).unwrap().header().clone();
    let table_bytes = Table::default().encode(BlockKind::Chunks);
    let table_hash = *blake3::hash(&table_bytes).as_bytes();
    let header = BlockHeader { table_bytes: table_bytes.len() as u32, table_hash, ..header };
    let name = BlockName::from_bytes([9; 32]);
    let forged = FooterBlock { offset: 0, arrival: 0, name, header: header.clone(), table_bytes };
    let (kind, repository) = (BlockKind::Chunks, header.repository);
    let payload = ended_by(&Footer { kind, repository, random: [0; 32], blocks: vec![forged] });
    let evil = carrying(&payload, &header, id(2));
    world.handle().put_blocks(&session, std::slice::from_ref(&evil)).unwrap();

    world.restart();
    let session = open_session(&*world.handle());
    for (number, block) in [(1, good), (2, evil)] {
        let fetched = world.handle().fetch_objects(&session, &[id(number)], 0).unwrap().blocks;
        assert_eq!(fetched, [block]);
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

/// Any closed pack.
fn pack_of(dir: &Path) -> Option<std::path::PathBuf> {
    let folders = fs::read_dir(dir.join("packs")).unwrap();
    let mut packs = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    packs.next().map(|pack| pack.unwrap().path())
}

#[test]
fn a_tail_that_was_being_made_is_no_trouble() {
    let mut script = Script::new();
    script.put(500);
    let moment = script.moments.last().unwrap();
    for (name, bytes) in
        [("nodes.9.payload", &b""[..]), ("chunks.8.journal", b""), ("chunks.7.journal", b"HJn")]
    {
        let world = world_of(moment);
        fs::write(world.dir().join("tails").join(name), bytes).unwrap();
        assert_whole(&world, moment);
    }
}

#[test]
fn a_hole_in_what_was_durable_is_told_and_the_rest_is_saved() {
    let mut script = Script::new();
    for _ in 0..3 {
        script.put(5000);
    }
    let moment = script.moments.last().unwrap();
    // In the first entry's header, and in each byte of its length.
    for at in [76, 0, 1, 2, 3] {
        a_hole_is_told_and_the_rest_is_saved(moment, JOURNAL_FRONT_BYTES + at);
    }
}

fn a_hole_is_told_and_the_rest_is_saved(moment: &Moment, at: usize) {
    let world = world_of(moment);
    let (_, journal) = tails(&world.dir())
        .into_iter()
        .find(|(path, _)| name_of(path).starts_with("chunks"))
        .unwrap();
    let mut bytes = fs::read(&journal).unwrap();
    bytes[at] ^= 0xff;
    fs::write(&journal, bytes).unwrap();

    let chunks: Vec<_> = moment.blocks.iter().step_by(2).collect();
    let repository = world.handle();
    let fetches = |session: &SessionId| {
        assert!(repository.fetch_objects(session, &[chunks[0].0], 0).is_err());
        for (object, block) in &chunks[1..] {
            let fetched = repository.fetch_objects(session, &[*object], 0).unwrap().blocks;
            assert_eq!(fetched, std::slice::from_ref(block));
        }
    };
    // Who only reads changes nothing, and finds as much.
    let before = fs::read(&journal).unwrap();
    fetches(&repository.open_session(&SessionPurpose::Read).unwrap().session);
    assert_eq!(fs::read(&journal).unwrap(), before);
    let session = open_session(&*repository);
    fetches(&session);
    assert!(!repository.scrub(&mut |_| {}).unwrap().damaged.is_empty());
    // What is lost is asked for again.
    let answer = repository.missing(&session, &[chunks[0].0, chunks[1].0]).unwrap();
    assert_eq!(answer, [true, false]);
}

#[test]
fn what_is_saved_of_a_tail_with_a_hole_is_what_was_stored() {
    let mut script = Script::new();
    for _ in 0..4 {
        script.put(5000);
    }
    let moment = script.moments.last().unwrap();
    let world = world_of(moment);
    let (payload, journal) = tails(&world.dir())
        .into_iter()
        .find(|(path, _)| name_of(path).starts_with("chunks"))
        .unwrap();
    // A block before the hole, of which the journal says that it was durable.
    let mut bytes = fs::read(&payload).unwrap();
    bytes[100] ^= 1;
    fs::write(&payload, bytes).unwrap();
    let mut bytes = fs::read(&journal).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&journal, bytes).unwrap();

    let repository = world.handle();
    let session = open_session(&*repository);
    let there = moment.blocks.iter().step_by(2).map(|(object, block)| {
        let fetched = repository.fetch_objects(&session, &[*object], 0);
        fetched.is_ok_and(|fetched| fetched.blocks == std::slice::from_ref(block))
    });
    let there: Vec<bool> = there.collect();
    assert_eq!((there[0], there[3]), (false, true));
    let lost = moment.blocks.first().unwrap().0;
    assert_eq!(repository.missing(&session, &[lost]).unwrap(), [true]);
    assert!(payload.with_extension("payload.damaged").exists());
}
