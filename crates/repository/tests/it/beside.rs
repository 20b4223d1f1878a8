//! Everything at once: machines that back up and forget, restores, scrubs, repairs, prunes and compacting, all on
//! one store and without a pause.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use holdall_format::{MachineId, ObjectId, Record, RecordHash, RecordKind, TombstoneReason};
use holdall_protocol::contract::{ContractWorld, Forge, TestKey};
use holdall_protocol::{CommitAnswer, Repository, SessionPurpose};
use holdall_repository::{EmbeddedRepository, PruneOptions, Store};
use holdall_testkit::Random;

use crate::compacting::{References, compact};
use crate::house::{House, id};
use crate::world::{MACHINE, MACHINE_SEED};

const BACKUPS: usize = 40;

/// A snapshot and all that it needs.
type Kept = (RecordHash, Vec<ObjectId>);

/// One of several machines that back up to the same store, each with its own chain.
struct Writer<'a> {
    store: &'a Arc<Store>,
    machine: EmbeddedRepository,
    forge: Forge,
    random: Random,
    head: Option<(RecordHash, u64)>,
    /// What nobody forgot yet, for others to restore.
    kept: &'a Mutex<Vec<Kept>>,
}

impl<'a> Writer<'a> {
    fn new(store: &'a Arc<Store>, number: u8, kept: &'a Mutex<Vec<Kept>>) -> Self {
        let (id, seed) = (MachineId::from_bytes([number; 16]), [number; 32]);
        let machine = store.for_machine(id, TestKey::from_seed(&seed).public());
        let (forge, random) = (Forge::new(1, id, &seed), Random::new(number.into()));
        Self { store, machine, forge, random, head: None, kept }
    }

    /// Backs up and forgets by turns.
    fn work(mut self) {
        for _ in 0..BACKUPS {
            let count = 1 + self.random.below(6);
            let chunks = (0..count).map(|_| self.random.below(60)).collect();
            self.back_up(&chunks);
            let mut kept = self.kept.lock().unwrap();
            let count = kept.len() as u64;
            if count > 6 {
                let (gone, _) = kept.swap_remove(self.random.below(count) as usize);
                drop(kept);
                self.store.forget(&[gone], TombstoneReason::Retention).unwrap();
            }
        }
    }

    /// Backs up a root over shared chunks; sends again what a commit says is missing.
    fn back_up(&mut self, chunks: &BTreeSet<u64>) {
        let purpose = SessionPurpose::Backup { parents: vec![] };
        let session = self.machine.open_session(&purpose).unwrap().session;
        let objects: Vec<_> = chunks.iter().map(|chunk| id(&format!("chunk {chunk}"))).collect();
        let root = id(&format!("root over {chunks:?}"));
        for _ in 0..10 {
            let missing = self.machine.missing(&session, &objects).unwrap();
            let missing = objects.iter().zip(missing).filter(|(_, is_missing)| *is_missing);
            let missing: Vec<ObjectId> = missing.map(|(chunk, _)| *chunk).collect();
            for together in missing.chunks(3) {
                let block = self.forge.chunks_of_bytes(together, 1 << 20);
                self.machine.put_blocks(&session, &[block]).unwrap();
            }
            if self.machine.missing(&session, &[root]).unwrap()[0] {
                let node = self.forge.nodes(&[(root, &objects)]);
                self.machine.put_blocks(&session, &[node]).unwrap();
            }
            let bytes = self.forge.record(RecordKind::Snapshot, root, self.head);
            if let CommitAnswer::Committed(_) = self.machine.commit(&session, &bytes).unwrap() {
                let record = Record::decode(&bytes).unwrap();
                self.head = Some((record.hash(), record.head.sequence));
                let all = objects.iter().copied().chain([root]).collect();
                return self.kept.lock().unwrap().push((record.hash(), all));
            }
        }
        panic!("a session's objects went again and again");
    }
}

/// Does something again and again until all is done, and adds up what it counts.
fn until(done: &AtomicBool, mut work: impl FnMut() -> u64) -> impl FnOnce() -> u64 {
    move || {
        let mut counted = 0;
        while !done.load(Ordering::Acquire) {
            counted += work();
        }
        counted
    }
}

/// Fetches all that a snapshot needs, in a session of its own that began while it was not forgotten.
fn restore(machine: &EmbeddedRepository, kept: &Mutex<Vec<Kept>>, which: usize) -> bool {
    let session = machine.open_session(&SessionPurpose::Read).unwrap().session;
    let Some((_, objects)) = kept.lock().unwrap().get(which).cloned() else { return false };
    for object in objects {
        assert_eq!(machine.fetch_objects(&session, &[object], 0).unwrap().blocks.len(), 1);
    }
    machine.close_session(&session).unwrap();
    true
}

#[test]
fn beside_each_other_all_that_a_repository_does_loses_nothing() {
    let mut house = House::new();
    let store = house.store();
    let (done, never, kept) = (AtomicBool::new(false), AtomicBool::new(false), Mutex::default());
    let store_machine = || store.for_machine(MACHINE, TestKey::from_seed(&MACHINE_SEED).public());
    std::thread::scope(|scope| {
        let writers = (1..=3).map(|number| Writer::new(&store, number, &kept));
        let working: Vec<_> = writers.map(|writer| scope.spawn(move || writer.work())).collect();
        let (store, kept, done, never) = (&store, &kept, &done, &never);
        let options = PruneOptions { grace: Duration::ZERO, sparse_part: 4 };
        let pruning =
            scope.spawn(until(done, move || store.prune(&options, never).unwrap().deleted_packs));
        let forge = Forge::new(1, MACHINE, &MACHINE_SEED);
        let compacting = scope.spawn(until(done, move || {
            // Only chunks share blocks, so that no node has to be put again.
            let (_, superseded) = compact(store, &forge, &References::new(), false);
            superseded.map_or(0, |superseded| superseded.blocks)
        }));
        let (machine, mut random) = (store_machine(), Random::new(9));
        let restoring = scope
            .spawn(until(done, move || restore(&machine, kept, random.below(8) as usize).into()));
        let scrubbing = scope.spawn(until(done, move || {
            assert_eq!(store.scrub(never, &mut |_| {}).unwrap().damaged, []);
            1
        }));
        let repairing = scope.spawn(until(done, move || {
            let report = store.repair(false, never, &mut |_| {}).unwrap();
            assert!(report.repairs.is_empty() && report.scrub.damaged.is_empty(), "{report:?}");
            1
        }));
        let worked: Vec<_> = working.into_iter().map(ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Release);
        assert!(worked.iter().all(Result::is_ok), "a writer failed");
        let all = [pruning, compacting, restoring, scrubbing, repairing];
        let counted = all.map(|thread| thread.join().unwrap());
        println!("packs deleted, blocks that gave way, restores, scrubs, repairs: {counted:?}");
        assert!(counted.iter().all(|count| *count > 0), "one of them did nothing: {counted:?}");
    });
    let machine = store_machine();
    assert_eq!(machine.scrub(&mut |_| {}).unwrap().damaged, []);
    let left = kept.lock().unwrap().len();
    assert!((0..left).all(|which| restore(&machine, &kept, which)));
    drop((machine, store));
    house.world.restart();
    house.assert_whole();
}
