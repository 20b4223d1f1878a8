//! Whichever call of the storage fails, nothing that was acknowledged is lost, and the next start repairs the rest.
//!
//! The history is a backup, a prune that condemns and one that deletes, and a repair, each from where it begins. Every
//! call of each meets with every fate. What a command says to people then, and what the calls of lease, index and
//! parity do, real processes ask: `nth_call` of the command line. Tails and sessions have their calls fail here too,
//! though they stay on this computer whatever the storage is.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use holdall_format::{ObjectId, RecordHash, RecordKind, SessionId, TombstoneReason};
use holdall_protocol::contract::{Forge, TestKey};
use holdall_protocol::{CommitAnswer, Repository, RepositoryError, SessionPurpose};
use holdall_sys::Clock;
use holdall_testkit::{FakeClock, Slice};
use rustix::io::Errno;

use crate::opening::create;
use crate::opening::lease::Access;
use crate::place::{MACHINE, id};
use crate::prune::PruneOptions;
use crate::storage::layout::Layout;
use crate::storage::memory::{Fate, MemoryStorage};
use crate::store::Store;

const GRACE: Duration = Duration::from_secs(24 * 3600);
/// A change has one fault in so many happen.
const SLICES: u64 = 7;
/// Folders of which nothing that was removed comes back: what a prune says it has deleted.
const DELETED_FROM: [&str; 2] = ["packs", "condemned"];
/// Folders of what is published whole. Tails and sessions stay on this computer, whose lists are never late.
const PUBLISHED: [&str; 10] = [
    "wrappings",
    "spare",
    "packs",
    "records",
    "tombstones",
    "given-up",
    "condemned",
    "superseded",
    "pruned",
    "positions",
];
const FATES: [Fate; 5] = [
    Fate::Refused(Errno::IO),
    Fate::Refused(Errno::NOSPC),
    Fate::NotDurable(Errno::IO),
    Fate::ReplyLost(Errno::IO),
    Fate::Ends,
];

/// A repository in memory, and what was acknowledged of it.
struct World {
    storage: MemoryStorage,
    forge: Forge,
    clock: Arc<FakeClock>,
    acknowledged: Acknowledged,
    /// So many snapshots were begun.
    begun: u32,
    /// Whether a file could not be read when it was opened. That may have been the newest record, beside which another
    /// took its place: both are listed and restore, as where a copy of a repository goes on by itself.
    has_missed_some: bool,
}

#[derive(Debug, Clone, Default)]
struct Acknowledged {
    snapshots: Vec<RecordHash>,
    /// Those that somebody asked to forget, acknowledged or not.
    asked_to_go: BTreeSet<RecordHash>,
    gone: BTreeSet<RecordHash>,
}

/// A folder for a lease and an index, in memory if there is such a place.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Opens the repository, with its lease and index in that folder.
fn open_in(
    folder: &tempfile::TempDir,
    storage: &MemoryStorage,
    clock: &Arc<FakeClock>,
) -> Result<Arc<Store>, RepositoryError> {
    let signer = Arc::new(TestKey::from_seed(&[9; 32]));
    let layout = Layout::in_memory(folder.path(), storage);
    let cache = folder.path().join("cache");
    Store::open_at(layout, Access::Write, &cache, signer, clock.clone()).map(Arc::new)
}

/// What is done while calls fail.
#[derive(Debug, Clone, Copy)]
enum Work {
    Backup,
    ForgetAndCondemn,
    Delete,
    Repair,
}

impl World {
    /// With two snapshots in packs, the first of which shares a chunk with the second, and one in tails.
    fn new() -> Self {
        let storage = MemoryStorage::default();
        let folder = folder();
        let forge = Forge::new(1, MACHINE, &[8; 32]);
        let layout = Layout::in_memory(folder.path(), &storage);
        create::create(&layout, &forge.new_repository()).unwrap();
        let clock = Arc::new(FakeClock::at(1_800_000_000));
        let acknowledged = Acknowledged::default();
        let mut world =
            Self { storage, forge, clock, acknowledged, begun: 0, has_missed_some: false };
        let store = open_in(&folder, &world.storage, &world.clock).unwrap();
        for is_closed in [true, true, false] {
            world.back_up(&store).unwrap();
            if is_closed {
                close_tails(&store);
            }
        }
        drop(store);
        world
    }

    /// What is there once its process ended, also by being killed.
    fn again(&self) -> Self {
        self.holding(self.storage.after_kill())
    }

    fn after_power_cut(&self) -> Self {
        self.holding(self.storage.after_power_cut())
    }

    fn holding(&self, storage: MemoryStorage) -> Self {
        let clock = Arc::new(FakeClock::default());
        clock.set_ns(self.clock.now_ns());
        let forge = Forge::new(1, MACHINE, &[8; 32]);
        let acknowledged = self.acknowledged.clone();
        let Self { begun, has_missed_some, .. } = *self;
        Self { storage, forge, clock, acknowledged, begun, has_missed_some }
    }

    /// Where that work begins.
    fn before(&self, work: Work) -> Self {
        let mut world = self.again();
        match work {
            Work::Backup | Work::ForgetAndCondemn => {}
            Work::Delete => {
                world.work(Work::ForgetAndCondemn).unwrap();
                world.clock.advance(2 * GRACE);
            }
            Work::Repair => world.storage.damage_largest_in(Path::new("packs")),
        }
        world
    }

    fn work(&mut self, work: Work) -> Result<(), RepositoryError> {
        let folder = folder();
        let store = open_in(&folder, &self.storage, &self.clock)?;
        self.work_in(&store, work)
    }

    fn work_in(&mut self, store: &Arc<Store>, work: Work) -> Result<(), RepositoryError> {
        let options = PruneOptions { grace: GRACE, sparse_part: 3 };
        match work {
            Work::Backup => {
                self.back_up(store)?;
                close_tails(store);
                Ok(())
            }
            Work::ForgetAndCondemn => {
                let goes = self.acknowledged.snapshots[..1].to_vec();
                self.acknowledged.asked_to_go.extend(&goes);
                store.forget(&goes, TombstoneReason::Request)?;
                self.acknowledged.gone.extend(&goes);
                store.prune(&options, &AtomicBool::new(false)).map(drop)
            }
            Work::Delete => store.prune(&options, &AtomicBool::new(false)).map(drop),
            Work::Repair => {
                store.repair(false, &AtomicBool::new(false), &mut |_| {})?;
                // What was lost with a pack is stored again by the next backup that has it.
                self.put_again(store)
            }
        }
    }

    /// Stores a snapshot of three chunks, one of which every snapshot has.
    fn back_up(&mut self, store: &Arc<Store>) -> Result<(), RepositoryError> {
        self.begun += 1;
        let number = |of: u32| id(self.begun * 10 + of);
        let (root, chunks) = (number(0), [id(1), number(2), number(3)]);
        let machine = store.for_machine(MACHINE, self.forge.key.public());
        let purpose = SessionPurpose::Backup { parents: vec![] };
        let session = machine.open_session(&purpose)?.session;
        for chunk in chunks {
            machine.put_blocks(&session, &[self.forge.chunks_of_bytes(&[chunk], 3000)])?;
        }
        machine.put_blocks(&session, &[self.forge.nodes(&[(root, &chunks)])])?;
        self.commit(store, &session, root)
    }

    fn commit(
        &mut self,
        store: &Arc<Store>,
        session: &SessionId,
        root: ObjectId,
    ) -> Result<(), RepositoryError> {
        let newest = store.records().head(&MACHINE).map(|head| (head.hash, head.sequence));
        let head = self.forge.record_head(RecordKind::Snapshot, root, newest);
        let machine = store.for_machine(MACHINE, self.forge.key.public());
        let CommitAnswer::Committed(stored) = machine.commit(session, &self.forge.sign(head))?
        else {
            panic!("what was acknowledged counts as missing");
        };
        let stored = holdall_format::StoredRecord::decode(&stored).unwrap();
        self.acknowledged.snapshots.push(stored.record.hash());
        Ok(())
    }

    /// Stores the chunks of all snapshots again that count as missing, as a backup does that has them.
    fn put_again(&self, store: &Arc<Store>) -> Result<(), RepositoryError> {
        let machine = store.for_machine(MACHINE, self.forge.key.public());
        let purpose = SessionPurpose::Backup { parents: vec![] };
        let session = machine.open_session(&purpose)?.session;
        let of_one = |snapshot: u32| [2, 3].map(|of| id(snapshot * 10 + of));
        let chunks: Vec<_> = (1..=self.begun).flat_map(of_one).chain([id(1)]).collect();
        let missing = machine.missing(&session, &chunks)?;
        for (chunk, _) in chunks.iter().zip(missing).filter(|(_, is_missing)| *is_missing) {
            machine.put_blocks(&session, &[self.forge.chunks_of_bytes(&[*chunk], 3000)])?;
        }
        machine.close_session(&session)
    }

    /// Checks that all is there that was acknowledged, and that the repository goes on.
    fn assert_sound(mut self, after: Work, folder: &tempfile::TempDir, what: &str) {
        let store = open_in(folder, &self.storage, &self.clock);
        let store = &store.unwrap_or_else(|error| panic!("{what}: opened again: {error}"));
        for snapshot in &self.acknowledged.snapshots {
            let known = store.records().known(snapshot);
            let known = known.unwrap_or_else(|| panic!("{what}: {snapshot} is lost"));
            let may_be_gone = self.acknowledged.asked_to_go.contains(snapshot);
            assert!(may_be_gone || !known.forgotten, "{what}: {snapshot} went");
            let is_gone = self.acknowledged.gone.contains(snapshot);
            assert!(known.forgotten || !is_gone, "{what}: {snapshot} came back");
        }
        let mut sequences: Vec<u64> =
            store.records().after(0).iter().map(|record| record.sequence).collect();
        sequences.sort_unstable();
        let is_one_chain = sequences.is_sorted_by(|one, next| one < next);
        assert!(is_one_chain || self.has_missed_some, "{what}: the chain forks");
        if let Work::Repair = after {
            let repaired = self.work_in(store, Work::Repair);
            repaired.unwrap_or_else(|error| panic!("{what}: then a repair: {error}"));
        }
        assert_whole(store, what);
        // What was condemned is due.
        self.clock.advance(2 * GRACE);
        for work in [Work::Delete, Work::Backup] {
            self.work_in(store, work).unwrap_or_else(|e| panic!("{what}: then {work:?}: {e}"));
        }
        assert_whole(store, what);
        assert_deleted_for_good(&self.storage, what);
    }
}

/// Checks that no power cut brings back what was deleted.
fn assert_deleted_for_good(storage: &MemoryStorage, what: &str) {
    let mut comes_back = storage.not_durably_removed();
    comes_back.retain(|name| DELETED_FROM.iter().any(|folder| name.starts_with(folder)));
    assert_eq!(comes_back, Vec::<PathBuf>::new(), "{what}: a power cut brings it back");
}

fn close_tails(store: &Store) {
    let appender = store.appender().unwrap();
    [true, false].iter().for_each(|nodes| appender.close_open_tail(*nodes));
}

fn assert_whole(store: &Store, what: &str) {
    let report = store.scrub(&AtomicBool::new(false), &mut |_| {});
    let report = report.unwrap_or_else(|error| panic!("{what}: scrub: {error}"));
    assert_eq!(report.damaged, [], "{what}");
}

/// Has every call of a work meet with every fate.
fn meet_all_of(work: Work) {
    let begin = World::new().before(work);
    let mut whole = begin.again();
    whole.work(work).unwrap();
    let calls = whole.storage.calls();
    println!("{work:?}: {calls} calls");
    assert!(calls > 50, "{work:?} asks little: {calls} calls");
    let faults = (0..calls).flat_map(|call| FATES.map(|fate| (call, fate)));
    let faults = Slice::one_in(SLICES).pick(faults);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((call, fate)) = faults.get(next.fetch_add(1, Ordering::SeqCst)) {
                    meet(&begin, work, *call, *fate);
                }
            });
        }
    });
}

fn names_something(error: &RepositoryError) -> bool {
    matches!(error, RepositoryError::Damaged { .. }) || error.to_string().contains("/memory")
}

/// Has one call meet with a fate. Then the same process goes on, and another one: behind a power cut, with the index of
/// before, and behind a kill, with none.
fn meet(begin: &World, work: Work, call: u64, fate: Fate) {
    let what = format!("call {call} of {work:?}: {fate:?}");
    let mut world = begin.again();
    world.storage.plan(call, fate);
    let own = folder();
    let opened = open_in(&own, &world.storage, &world.clock);
    let (opened, outcome) = match opened {
        Ok(store) => {
            world.has_missed_some = !store.unreadable_files().is_empty();
            (Some(store.clone()), world.work_in(&store, work))
        }
        Err(error) => (None, Err(error)),
    };
    if let Err(error) = outcome {
        // Where a file could not be read, a check tells of it.
        let is_told = fate == Fate::Ends || world.has_missed_some || names_something(&error);
        assert!(is_told, "{what}: it does not say of what: {error}");
    }
    let (after_cut, after_kill) = (world.after_power_cut(), world.again());
    if let Some(store) = opened.filter(|store| fate != Fate::Ends && !store.reopen_would_recover())
    {
        let next = world.work_in(&store, Work::Backup);
        next.unwrap_or_else(|error| panic!("{what}: the same process goes on: {error}"));
        drop(store);
        world.after_power_cut().assert_sound(work, &own, &what);
    }
    after_cut.assert_sound(work, &own, &format!("{what}, and the power"));
    after_kill.assert_sound(work, &folder(), &what);
}

#[test]
fn whichever_call_of_a_backup_fails_nothing_acknowledged_is_lost() {
    meet_all_of(Work::Backup);
}

#[test]
fn whichever_call_of_a_forgetting_and_a_prune_fails_nothing_else_goes() {
    meet_all_of(Work::ForgetAndCondemn);
}

#[test]
fn whichever_call_of_a_prune_that_deletes_fails_nothing_that_is_needed_goes() {
    meet_all_of(Work::Delete);
}

#[test]
fn whichever_call_of_a_repair_fails_the_next_one_repairs() {
    meet_all_of(Work::Repair);
}

/// One process has it open all the time: what it put and removed it knows without a list.
#[test]
fn a_store_that_is_open_goes_on_whatever_lists_show() {
    let mut world = World::new();
    let own = folder();
    let store = open_in(&own, &world.storage, &world.clock).unwrap();
    world.storage.have_lists_be_late(&PUBLISHED);
    for work in [Work::Backup, Work::ForgetAndCondemn, Work::Backup] {
        world.work_in(&store, work).unwrap();
    }
    world.clock.advance(2 * GRACE);
    for work in [Work::Delete, Work::Backup] {
        world.work_in(&store, work).unwrap();
    }
    assert_whole(&store, "while lists are late");
    drop(store);
    world.storage.catch_up();
    world.assert_sound(Work::Backup, &own, "lists were late");
}

/// What is not listed counts as not there when a repository is opened, so that a machine's chain may fork. More than a
/// backup is not promised then: what [`crate::storage::Storage`] asks of lists.
#[test]
fn what_was_acknowledged_is_whole_once_lists_that_were_late_when_it_was_opened_catch_up() {
    for work in [Work::Backup, Work::ForgetAndCondemn, Work::Delete, Work::Repair] {
        let mut world = World::new().before(work);
        world.storage.have_lists_be_late(&PUBLISHED);
        world.work(work).unwrap();
        let mut next = world.again();
        next.has_missed_some = true;
        next.work(Work::Backup).unwrap();
        next.storage.catch_up();
        next.again().assert_sound(work, &folder(), &format!("a backup behind {work:?}"));
    }
}
