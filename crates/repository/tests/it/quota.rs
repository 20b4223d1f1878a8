//! Counting what is stored, and storing no more than the quota allows.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Barrier};

use holdall_format::{MachineId, ObjectId, RecordKind, SessionId};
use holdall_protocol::contract::{Forge, TestKey};
use holdall_protocol::{CommitAnswer, Repository, RepositoryError, SessionPurpose};
use holdall_repository::{EmbeddedRepository, Store};

use crate::world::{MACHINE, MACHINE_SEED, World, signer};

fn id(number: u32) -> ObjectId {
    ObjectId::from_bytes(*blake3::hash(&number.to_le_bytes()).as_bytes())
}

/// A repository that its owner shares, as a server does.
struct Shared {
    world: World,
    forge: Forge,
    store: Arc<Store>,
}

impl Shared {
    fn new() -> Self {
        let world = World::new();
        let forge = Forge::new(1, MACHINE, &MACHINE_SEED);
        world.handle().create(&forge.new_repository()).unwrap();
        let store = open(&world);
        Self { world, forge, store }
    }

    fn reopened(self) -> Self {
        let Self { world, forge, store } = self;
        drop(store);
        let store = open(&world);
        Self { world, forge, store }
    }

    fn repository(&self) -> EmbeddedRepository {
        self.store.for_machine(MACHINE, TestKey::from_seed(&MACHINE_SEED).public())
    }

    fn session(&self) -> SessionId {
        let purpose = SessionPurpose::Backup { parents: vec![] };
        self.repository().open_session(&purpose).unwrap().session
    }

    fn put(&self, session: &SessionId, chunk: u32, bytes: usize) -> Result<(), RepositoryError> {
        let block = self.forge.chunks_of_bytes(&[id(chunk)], bytes);
        self.repository().put_blocks(session, &[block]).map(drop)
    }

    /// Commits a snapshot of that chunk, whose node is there already.
    fn commit(&self, session: &SessionId) -> CommitAnswer {
        self.try_commit(session).unwrap()
    }

    fn try_commit(&self, session: &SessionId) -> Result<CommitAnswer, RepositoryError> {
        let record = self.forge.record(RecordKind::Snapshot, id(0), None);
        self.repository().commit(session, &record)
    }

    /// Bytes of all files that hold blocks or records.
    fn disk_bytes(&self) -> u64 {
        ["packs", "tails", "records"]
            .iter()
            .map(|name| bytes_in(&self.world.dir().join(name)))
            .sum()
    }
}

fn open(world: &World) -> Arc<Store> {
    Store::open(&world.dir(), &world.cache_dir(), signer(), world.clock.clone()).unwrap()
}

fn bytes_in(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let bytes = |entry: fs::DirEntry| match entry.metadata().unwrap() {
        found if found.is_dir() => bytes_in(&entry.path()),
        found => found.len(),
    };
    entries.map(bytes).sum()
}

fn is_over_quota(answer: &Result<(), RepositoryError>) -> bool {
    matches!(answer, Err(RepositoryError::NotAllowed { reason, .. }) if reason.contains("quota"))
}

#[test]
fn what_is_counted_is_what_lies_on_the_disk() {
    let shared = Shared::new();
    let session = shared.session();
    for chunk in 1..14 {
        shared.put(&session, chunk, 5 << 20).unwrap();
    }
    let node = shared.forge.nodes(&[(id(0), &[id(1)])]);
    shared.repository().put_blocks(&session, &[node]).unwrap();
    shared.commit(&session);
    let usage = shared.store.usage().without_room();
    assert_eq!(usage.stored_bytes, shared.disk_bytes());
    assert_eq!((usage.packs, usage.blocks, usage.objects, usage.records), (3, 14, 14, 1));
    let shared = shared.reopened();
    assert_eq!(shared.store.usage().without_room(), usage, "read from the index");
    fs::remove_dir_all(shared.world.cache_dir()).unwrap();
    assert_eq!(shared.reopened().store.usage().without_room(), usage, "read from the packs");
}

#[test]
fn over_the_quota_nothing_is_written_and_what_is_there_can_be_committed_and_read() {
    let shared = Shared::new();
    let session = shared.session();
    shared.put(&session, 1, 100_000).unwrap();
    let node = shared.forge.nodes(&[(id(0), &[id(1)])]);
    shared.repository().put_blocks(&session, &[node]).unwrap();
    let before = shared.disk_bytes();
    shared.store.limit_to(Some(before + 50_000));
    assert!(is_over_quota(&shared.put(&session, 2, 100_000)));
    assert_eq!(shared.disk_bytes(), before);
    shared.put(&session, 3, 10_000).unwrap();

    shared.store.limit_to(Some(1));
    assert!(is_over_quota(&shared.put(&session, 4, 1)));
    assert!(matches!(shared.commit(&session), CommitAnswer::Committed(_)));
    let session = shared.session();
    assert_eq!(shared.repository().fetch_objects(&session, &[id(1)], 0).unwrap().blocks.len(), 1);
    shared.store.limit_to(None);
    shared.put(&session, 2, 100_000).unwrap();
}

#[test]
fn records_and_wrappings_count_and_pass_the_quota_by_no_more_than_the_reserve() {
    const RESERVE_BYTES: u64 = 1 << 20;
    let shared = Shared::new();
    let session = shared.session();
    shared.put(&session, 1, 1 << 20).unwrap();
    let node = shared.forge.nodes(&[(id(0), &[id(1)])]);
    shared.repository().put_blocks(&session, &[node]).unwrap();
    let before = shared.disk_bytes();
    shared.store.limit_to(Some(1));
    let wrappings = shared.forge.wrappings(2);
    assert!(is_over_quota(&shared.store.put_wrappings(&wrappings)));
    assert!(is_over_quota(&shared.try_commit(&session).map(drop)));
    assert_eq!(shared.disk_bytes(), before);
    // A 64th of the rest is reserve too.
    let sets = 2 * wrappings.len() as u64;
    shared.store.limit_to(Some((before + sets - RESERVE_BYTES) / 65 * 64 + 64));
    shared.store.put_wrappings(&wrappings).unwrap();
    assert!(is_over_quota(&shared.try_commit(&session).map(drop)));
    shared.store.limit_to(Some(before));
    assert!(matches!(shared.commit(&session), CommitAnswer::Committed(_)));
}

/// Two sessions of each of four machines, which know nothing of each other.
#[test]
fn machines_and_sessions_that_put_at_once_do_not_pass_their_quota_together() {
    const QUOTA_BYTES: u64 = 1_000_000;
    // What tails and packs say of their blocks is not asked for beforehand.
    const AROUND_BYTES: u64 = 20 * 1000;
    let shared = Shared::new();
    shared.store.limit_to(Some(QUOTA_BYTES));
    let begin = Barrier::new(8);
    let put_many = &|number: u8| {
        begin.wait();
        let machine = MachineId::from_bytes([number % 4; 16]);
        let key = TestKey::from_seed(&[number % 4; 32]).public();
        let repository = shared.store.for_machine(machine, key);
        let purpose = SessionPurpose::Backup { parents: vec![] };
        let session = repository.open_session(&purpose).unwrap().session;
        let put = |chunk: u32| {
            let chunk = id(u32::from(number) * 100 + chunk);
            let block = shared.forge.chunks_of_bytes(&[chunk], 50_000);
            let answer = repository.put_blocks(&session, &[block]).map(drop);
            assert!(shared.store.usage().stored_bytes < QUOTA_BYTES + AROUND_BYTES);
            answer
        };
        (0..20).map(put).collect::<Vec<_>>()
    };
    let answers: Vec<_> = std::thread::scope(|scope| {
        let threads = [0, 1, 2, 3, 4, 5, 6, 7].map(|number| scope.spawn(move || put_many(number)));
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for answers in &answers {
        assert!(answers.iter().any(Result::is_err), "there is no room for all of any session");
        assert!(
            answers.iter().all(|answer| answer.is_ok() || is_over_quota(answer)),
            "{answers:?}"
        );
    }
    let taken = answers.iter().flatten().filter(|answer| answer.is_ok()).count();
    assert!((15..20).contains(&taken), "{taken} blocks of about 50 kB were taken");
}
