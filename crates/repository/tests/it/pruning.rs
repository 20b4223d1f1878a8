//! Forgetting and pruning: what goes, what stays, and what nobody may lose by it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use holdall_format::{ObjectId, RecordHash, RecordKind, SessionId, Tombstone, TombstoneReason};
use holdall_protocol::contract::{ContractWorld, TestKey};
use holdall_protocol::{
    CommitAnswer, OwnedRepository, PruneReport, RecordQuery, Repository, RepositoryError,
    SessionPurpose,
};
use holdall_repository::{PruneOptions, Store};
use proptest::prelude::*;

use crate::compacting::{References, compact};
use crate::house::{House, copy_files, id, names};
use crate::world::{MACHINE, MACHINE_SEED};

const HOUR_NS: i64 = 3600 * 1_000_000_000;
const DAY: Duration = Duration::from_secs(24 * 3600);

fn with_grace(store: &Store) -> PruneReport {
    let options = PruneOptions { grace: DAY, sparse_part: 4 };
    store.prune(&options, &AtomicBool::new(false)).unwrap()
}

fn files_in(dir: &Path) -> usize {
    let folders = fs::read_dir(dir).unwrap().map(|folder| folder.unwrap().path());
    folders.filter(|path| path.is_dir()).map(|folder| fs::read_dir(folder).unwrap().count()).sum()
}

#[test]
fn a_forgotten_snapshot_leaves_a_tombstone_and_the_chain_goes_on() {
    let mut house = House::new();
    let first = house.snapshot("one", &names(0..2), 100);
    let second = house.snapshot("two", &names(1..3), 100);
    house.repository().forget(&[second]).unwrap();
    for _ in 0..2 {
        let query = RecordQuery { limit: 10, ..RecordQuery::default() };
        let listed = house.repository().records(&query).unwrap();
        assert_eq!(listed.len(), 2);
        assert!(!Tombstone::is_begun_by(&listed[0].stored));
        let (tombstone, head) = Tombstone::decode_signed(&listed[1].stored).unwrap();
        assert_eq!((tombstone.record, tombstone.log_position), (second, listed[1].position));
        assert_eq!((tombstone.reason, head.sequence), (TombstoneReason::Request, 2));
        house.repository().forget(&[second]).unwrap();
        house.world.restart();
    }
    let unknown = house.repository().forget(&[first, RecordHash::from_bytes([9; 32])]);
    assert!(matches!(unknown, Err(RepositoryError::Refused { .. })));
    assert_eq!(house.repository().usage().unwrap().records, 1);
    house.snapshot("three", &names(0..1), 100);
    house.assert_whole();
}

#[test]
fn a_record_that_a_crash_left_beside_its_tombstone_is_forgotten() {
    let mut house = House::new();
    let first = house.snapshot("one", &names(0..2), 100);
    let records = house.world.dir().join("records");
    let file = fs::read_dir(&records).unwrap().next().unwrap().unwrap().path();
    let bytes = fs::read(&file).unwrap();
    house.repository().forget(&[first]).unwrap();
    assert!(!file.exists());
    fs::write(&file, bytes).unwrap();
    house.world.restart();
    let query = RecordQuery { limit: 10, ..RecordQuery::default() };
    let listed = house.repository().records(&query).unwrap();
    assert_eq!(listed.len(), 1);
    assert!(Tombstone::is_begun_by(&listed[0].stored));
    house.session(&[]);
    assert!(!file.exists(), "whoever writes puts it in order");
}

#[test]
fn what_only_a_forgotten_snapshot_held_is_given_back() {
    let mut house = House::new();
    let first = house.snapshot("one", &names(0..20), 5 << 20);
    house.snapshot("two", &names(9..12), 5 << 20);
    let before = house.repository().usage().unwrap().stored_bytes;
    assert_eq!(house.prune().deleted_packs, 0, "everything is needed");
    house.repository().forget(&[first]).unwrap();
    let forgotten = house.repository().usage().unwrap().without_room();
    let foreseen = house.repository().prune(true).unwrap();
    assert_eq!(
        house.repository().usage().unwrap().without_room(),
        forgotten,
        "nothing was changed"
    );

    let report = house.prune();
    assert!(report.deleted_packs >= 2 && report.waiting_packs == 0, "{report:?}");
    let after = house.repository().usage().unwrap().stored_bytes;
    assert_eq!(report.stored_after_bytes, after);
    assert!((15 << 20..17 << 20).contains(&after), "{after} of {before}");
    assert!(foreseen.stored_after_bytes.abs_diff(after) < 1 << 20, "{foreseen:?} {report:?}");
    for cache_is_lost in [false, false, true] {
        let session = house.session(&[]);
        let ids = [id("chunk 8"), id("chunk 9"), id("one"), id("two")];
        let missing = house.repository().missing(&session, &ids).unwrap();
        assert_eq!(missing, [true, false, true, false]);
        assert!(!house.has(id("chunk 8")) && house.has(id("chunk 9")) && house.has(id("two")));
        house.assert_whole();
        house.world.close();
        if cache_is_lost {
            fs::remove_dir_all(house.world.cache_dir()).unwrap();
        }
        house.world.restart();
    }
    assert_eq!(house.prune().deleted_packs, 0, "nothing is left to do");
    house.snapshot("three", &names(7..10), 5 << 20);
    house.assert_whole();
}

#[test]
fn the_number_of_a_prune_is_not_given_out_again_after_a_restart() {
    let mut house = House::new();
    let snapshots = ["one", "two", "three"].map(|root| house.snapshot(root, &names(0..3), 3000));
    let mut numbers = Vec::new();
    for snapshot in &snapshots[..2] {
        house.repository().forget(&[*snapshot]).unwrap();
        assert!(house.prune().condemned_packs > 0);
        let entries = fs::read_dir(house.world.dir().join("pruned")).unwrap();
        let last = entries.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
        numbers.push(last);
        house.world.restart();
    }
    assert!(numbers.iter().all(|last| last.len() == 1) && numbers[0] < numbers[1], "{numbers:?}");
    house.assert_whole();
}

#[test]
fn what_a_session_put_or_relies_on_stays() {
    let mut house = House::new();
    let first = house.snapshot("one", &names(0..10), 5 << 20);
    let session = house.session(&[]);
    let late = vec!["late".to_owned()];
    house.put(&session, "of session", &[names(0..10), late].concat(), 5 << 20);
    house.repository().forget(&[first]).unwrap();
    let report = house.prune();
    assert!(report.condemned_bytes < 1 << 20, "the session was told that its chunks are there");
    house.try_commit(&session, "of session").unwrap();
    house.assert_whole();
    assert!(house.has(id("chunk 0")) && house.has(id("late")));
    house.assert_whole();
}

#[test]
fn a_parent_that_is_forgotten_stays_until_its_session_ends() {
    let mut house = House::new();
    let first = house.snapshot("one", &names(0..10), 5 << 20);
    let session = house.session(&[first]);
    house.repository().forget(&[first]).unwrap();
    assert_eq!(house.prune().condemned_packs, 0);
    // Nothing was asked for: the client knows that its parent is there.
    let node = house.forge.nodes(&[(id("new"), &[id("one")])]);
    house.repository().put_blocks(&session, &[node]).unwrap();
    house.try_commit(&session, "new").unwrap();
    house.prune();
    house.assert_whole();
    assert!(house.has(id("chunk 3")));
}

#[test]
fn a_condemned_pack_goes_when_its_grace_is_over_and_nobody_reads_any_more() {
    let mut house = House::new();
    let first = house.snapshot("one", &names(0..10), 5 << 20);
    house.repository().forget(&[first]).unwrap();
    let store = house.store();
    let machine = store.for_machine(MACHINE, TestKey::from_seed(&MACHINE_SEED).public());
    let reading = machine.open_session(&SessionPurpose::Read).unwrap().session;
    let report = with_grace(&store);
    assert!(report.condemned_packs > 0 && report.deleted_packs == 0, "{report:?}");
    assert_eq!(report.waiting_packs, report.condemned_packs);
    assert_eq!(report.next_due_ns, Some(1_000_000_000 + 24 * HOUR_NS));
    assert_eq!(machine.fetch_objects(&reading, &[id("chunk 0")], 0).unwrap().blocks.len(), 1);
    let writing = machine.open_session(&SessionPurpose::Backup { parents: vec![] }).unwrap();
    assert_eq!(machine.missing(&writing.session, &[id("chunk 0")]).unwrap(), [true]);
    machine
        .commit(&writing.session, &house.forge.record(RecordKind::Snapshot, id("one"), house.head))
        .map(|answer| assert!(matches!(answer, CommitAnswer::Missing(_)), "{answer:?}"))
        .unwrap();

    house.world.clock.advance_ns(23 * HOUR_NS);
    machine.fetch_objects(&reading, &[id("chunk 0")], 0).unwrap();
    house.world.clock.advance_ns(2 * HOUR_NS);
    assert_eq!(with_grace(&store).deleted_packs, 0, "somebody reads");
    machine.close_session(&reading).unwrap();
    let report = with_grace(&store);
    assert!(report.deleted_packs > 0 && report.waiting_packs == 0, "{report:?}");
    assert_eq!(files_in(&house.world.dir().join("packs")), 0);
    assert_eq!(fs::read_dir(house.world.dir().join("condemned")).unwrap().count(), 0);
}

#[test]
fn what_is_needed_again_is_stored_anew_and_a_late_delete_takes_nothing() {
    let mut house = House::new();
    let first = house.snapshot("one", &names(0..10), 5 << 20);
    house.repository().forget(&[first]).unwrap();
    with_grace(&house.store());
    house.world.restart();
    house.snapshot("again", &names(0..10), 5 << 20);
    house.world.clock.advance_ns(25 * HOUR_NS);
    assert!(with_grace(&house.store()).deleted_packs > 0);
    house.world.restart();
    house.assert_whole();
    assert!(house.has(id("chunk 0")));
}

/// As on a share that two computers use, each with a cache of its own.
#[test]
fn a_cache_from_before_a_pack_was_condemned_is_not_believed() {
    let mut house = House::new();
    let first = house.snapshot("one", &names(0..10), 5 << 20);
    house.snapshot_of_nodes("two");
    house.world.close();
    let (cache, kept) = (house.world.cache_dir(), house.world.dir().join("../kept"));
    copy_files(&cache, &kept);
    house.world.restart();
    house.repository().forget(&[first]).unwrap();
    assert!(with_grace(&house.store()).condemned_packs > 0);
    fs::remove_dir_all(&cache).unwrap();
    copy_files(&kept, &cache);
    house.world.restart();
    let session = house.session(&[]);
    let node = house.forge.nodes(&[(id("new"), &[id("one")])]);
    house.repository().put_blocks(&session, &[node]).unwrap();
    let lacking = house.try_commit(&session, "new").expect_err("its chunks are as good as gone");
    assert!(lacking.contains(&id("chunk 0")) && !lacking.contains(&id("one")), "{lacking:?}");
}

/// The same, when all of it was over before that computer came back, and what went lay in a tail when it
/// was there.
#[test]
fn a_cache_from_before_a_whole_prune_is_not_believed() {
    let mut house = House::new();
    let first = house.snapshot("one", &names(0..4), 1 << 20);
    house.snapshot_of_nodes("two");
    house.world.close();
    let (cache, kept) = (house.world.cache_dir(), house.world.dir().join("../kept"));
    copy_files(&cache, &kept);
    house.world.restart();
    house.repository().forget(&[first]).unwrap();
    assert!(with_grace(&house.store()).condemned_packs > 0);
    house.world.clock.advance_ns(25 * HOUR_NS);
    let report = with_grace(&house.store());
    assert!(report.deleted_packs > 0 && report.waiting_packs == 0, "{report:?}");
    fs::remove_dir_all(&cache).unwrap();
    copy_files(&kept, &cache);
    house.world.restart();
    let session = house.session(&[]);
    assert_eq!(house.repository().missing(&session, &[id("one")]).unwrap(), [true]);
    let node = house.forge.nodes(&[(id("new"), &[id("one")])]);
    house.repository().put_blocks(&session, &[node]).unwrap();
    let lacking = house.try_commit(&session, "new").expect_err("its chunks are gone");
    assert!(lacking.contains(&id("chunk 0")), "{lacking:?}");
}

/// Changes a byte in the first page of each run of the index; says how many there are.
fn damage_runs(cache: &Path) -> usize {
    let mut damaged = 0;
    for entry in fs::read_dir(cache).unwrap().map(Result::unwrap) {
        if entry.file_name().to_str().unwrap().starts_with("run-") {
            let mut bytes = fs::read(entry.path()).unwrap();
            bytes[4096] ^= 1;
            fs::write(entry.path(), bytes).unwrap();
            damaged += 1;
        }
    }
    damaged
}

/// As after a power cut: runs are not made durable, since they can be made again.
#[test]
fn damage_in_the_index_that_opening_meets_keeps_nobody_from_reading() {
    let mut house = House::new();
    house.snapshot("one", &names(0..11), 5 << 20);
    house.world.close();
    let (cache, kept) = (house.world.cache_dir(), house.world.dir().join("../kept"));
    copy_files(&cache, &kept);
    house.world.restart();
    house.snapshot("two", &names(20..31), 5 << 20);
    house.world.close();
    fs::remove_dir_all(&cache).unwrap();
    copy_files(&kept, &cache);
    assert_eq!(damage_runs(&cache), 1, "which the new pack's is merged with");
    house.world.restart();
    house.assert_whole();
    assert!(house.prune().deleted_packs == 0);
}

#[test]
fn damage_in_the_index_where_nothing_is_needed_keeps_no_prune_from_deleting() {
    let mut house = House::new();
    let first = house.snapshot("one", &names(0..11), 5 << 20);
    house.snapshot_of_nodes("two");
    house.repository().forget(&[first]).unwrap();
    house.world.close();
    assert_eq!(damage_runs(&house.world.cache_dir()), 1);
    house.world.restart();
    assert!(house.prune().deleted_packs > 0);
    house.assert_whole();
}

/// A disk that fails once: what is condemned must not be there at one look and gone at the next.
#[test]
fn a_mark_that_can_not_be_read_for_a_moment_costs_nothing() {
    for cache_is_lost in [false, true] {
        let mut house = House::new();
        let first = house.snapshot("one", &names(0..24), 5 << 20);
        // So much is moved that it becomes a pack, which is not needed where the first one counts.
        let every_other: Vec<_> = names(0..24).into_iter().step_by(2).collect();
        house.snapshot("two", &every_other, 5 << 20);
        house.repository().forget(&[first]).unwrap();
        let report = with_grace(&house.store());
        assert!(report.condemned_packs > 0 && report.moved_bytes > 0, "{report:?}");
        house.world.close();
        if cache_is_lost {
            fs::remove_dir_all(house.world.cache_dir()).unwrap();
        }
        let marks = fs::read_dir(house.world.dir().join("condemned")).unwrap();
        let marks: Vec<_> = marks.map(|mark| mark.unwrap().path()).collect();
        let aside = |mark: &Path| mark.with_extension("aside");
        for mark in &marks {
            fs::rename(mark, aside(mark)).unwrap();
            fs::create_dir(mark).unwrap();
        }
        house.world.restart();
        let foreseen = house.repository().prune(true).unwrap();
        assert_eq!(foreseen.waiting_packs, report.condemned_packs, "{foreseen:?}");
        for mark in &marks {
            fs::remove_dir(mark).unwrap();
            fs::rename(aside(mark), mark).unwrap();
        }
        house.prune();
        house.assert_whole();
        house.world.restart();
        house.prune();
        house.assert_whole();
        assert!(house.has(id("chunk 0")) && house.has(id("chunk 22")));
    }
}

/// The pack stays until its mark is written anew and the grace is over again.
#[test]
fn a_mark_that_is_damaged_is_written_anew() {
    let mut house = House::new();
    let first = house.snapshot("one", &names(0..10), 5 << 20);
    house.snapshot("two", &names(3..12), 5 << 20);
    house.repository().forget(&[first]).unwrap();
    let condemned = with_grace(&house.store()).condemned_packs;
    house.world.close();
    for mark in fs::read_dir(house.world.dir().join("condemned")).unwrap() {
        fs::write(mark.unwrap().path(), "torn").unwrap();
    }
    house.world.clock.advance_ns(25 * HOUR_NS);
    house.world.restart();
    let report = with_grace(&house.store());
    assert_eq!((report.deleted_packs, report.waiting_packs), (0, condemned), "{report:?}");
    house.world.clock.advance_ns(25 * HOUR_NS);
    assert_eq!(with_grace(&house.store()).deleted_packs, condemned);
    house.world.restart();
    house.assert_whole();
}

#[test]
fn where_something_is_missing_or_unreadable_nothing_is_deleted() {
    let packs = |house: &House| files_in(&house.world.dir().join("packs"));
    let broken = |breaking: &dyn Fn(&House)| {
        let mut house = House::new();
        let first = house.snapshot("one", &names(0..10), 5 << 20);
        house.snapshot("two", &names(10..30), 5 << 20);
        house.repository().forget(&[first]).unwrap();
        house.world.close();
        breaking(&house);
        house.world.restart();
        let before = packs(&house);
        let refused = house.repository().prune(false);
        assert!(matches!(refused, Err(RepositoryError::Damaged { .. })), "{refused:?}");
        assert_eq!(packs(&house), before);
    };
    let first_file = |dir: &Path| {
        let mut files: Vec<_> = fs::read_dir(dir).unwrap().map(|one| one.unwrap().path()).collect();
        files.sort();
        files.pop().unwrap()
    };
    // A record: what it needs is not known.
    broken(&|house| fs::write(first_file(&house.world.dir().join("records")), b"rot").unwrap());
    // A folder of packs: whether it held any is not known.
    broken(&|house| {
        let unread = (0..256).map(|byte| house.world.dir().join(format!("packs/{byte:02x}")));
        fs::write(unread.into_iter().find(|folder| !folder.exists()).unwrap(), b"rot").unwrap();
    });
    // A pack that is not there.
    broken(&|house| {
        let folders = fs::read_dir(house.world.dir().join("packs")).unwrap();
        for folder in folders.map(|folder| folder.unwrap().path()) {
            fs::remove_file(first_file(&folder)).unwrap();
        }
        // One stays, that something could be deleted.
        fs::create_dir_all(house.world.dir().join("packs/00")).unwrap();
        fs::write(house.world.dir().join("packs/00/").join("0".repeat(64)), b"rot").unwrap();
    });
}

/// Up to which position the log of a repository set some aside.
fn set_aside(dir: &Path) -> u64 {
    let mark = fs::read_dir(dir.join("positions")).unwrap().next().unwrap().unwrap();
    u64::from_str_radix(mark.file_name().to_str().unwrap(), 16).unwrap()
}

/// As file managers leave them.
#[test]
fn a_file_of_others_in_the_folder_of_packs_counts_as_nothing_that_is_lost() {
    let mut house = House::new();
    house.snapshot("one", &names(0..10), 5 << 20);
    let dir = house.world.dir();
    fs::write(dir.join("packs/.DS_Store"), "").unwrap();
    for _ in 0..2 {
        let before = set_aside(&dir);
        house.world.restart();
        house.assert_whole();
        house.prune();
        assert_eq!(set_aside(&dir), before);
    }
}

/// As a NAS makes them for what it knows of files.
#[test]
fn folders_of_others_among_packs_and_records_keep_nothing_from_being_deleted() {
    let mut house = House::new();
    let first = house.snapshot("one", &names(0..10), 5 << 20);
    house.snapshot("two", &names(10..30), 5 << 20);
    house.repository().forget(&[first]).unwrap();
    let dir = house.world.dir();
    let packs = fs::read_dir(dir.join("packs")).unwrap().map(|one| one.unwrap().path());
    let ours = ["packs", "records", "tombstones"].map(|folder| dir.join(folder));
    for folder in packs.chain(ours).collect::<Vec<_>>() {
        fs::create_dir(folder.join("@eaDir")).unwrap();
        fs::write(folder.join("@eaDir/thumb"), "").unwrap();
    }
    let before = set_aside(&dir);
    house.world.restart();
    assert!(house.prune().deleted_packs > 0);
    assert_eq!(set_aside(&dir), before);
}

#[test]
fn a_second_copy_stays_where_the_first_can_not_be_read() {
    let mut house = House::new();
    let first = house.snapshot("one", &names(0..10), 5 << 20);
    house.snapshot("two", &names(0..10), 5 << 20);
    // Another copy of the first chunk, in a pack of which nothing else is needed.
    let session = house.session(&[]);
    house.repository().put_blocks(&session, &[house.forge.chunks(&[id("chunk 0")])]).unwrap();
    house.put(&session, "three", &names(100..110), 5 << 20);
    let third = house.try_commit(&session, "three").unwrap();
    house.repository().forget(&[first, third]).unwrap();
    let pack = {
        let folders = fs::read_dir(house.world.dir().join("packs")).unwrap();
        let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
        files
            .map(|file| file.unwrap().path())
            .min_by_key(|path| fs::metadata(path).unwrap().modified().unwrap())
    };
    let file = fs::OpenOptions::new().write(true).open(pack.unwrap()).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"rot", 1000).unwrap();
    house.prune();
    assert!(house.has(id("chunk 0")), "its second copy stands in");
    house.world.restart();
    assert!(house.has(id("chunk 0")));
}

/// What is done in a random history.
#[derive(Debug, Clone)]
enum Step {
    /// Backs up a root over these chunks, of so many KiB.
    Snapshot {
        root: u8,
        chunks: Vec<u8>,
        kib: u16,
        /// So many of the chunks in one block.
        together: usize,
    },
    /// Puts and does not commit.
    Abandon {
        chunks: Vec<u8>,
    },
    Forget(u8),
    Prune,
    PruneWithGrace,
    /// Puts what is needed of sparse blocks again, and has them give way.
    Compact {
        hold: bool,
    },
    /// Lets go what is held, or takes it back.
    Settle {
        go: bool,
    },
    Pass {
        hours: u8,
    },
    Restart {
        cache_is_lost: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let chunks = || proptest::collection::vec(0u8..40, 1..12);
    prop_oneof![
        4 => (any::<u8>(), chunks(), 1u16..5000, 1usize..6).prop_map(|(root, chunks, kib, together)| {
            Step::Snapshot { root, chunks, kib, together }
        }),
        1 => chunks().prop_map(|chunks| Step::Abandon { chunks }),
        3 => any::<u8>().prop_map(Step::Forget),
        2 => Just(Step::Prune),
        2 => Just(Step::PruneWithGrace),
        2 => any::<bool>().prop_map(|hold| Step::Compact { hold }),
        1 => any::<bool>().prop_map(|go| Step::Settle { go }),
        1 => (0u8..200).prop_map(|hours| Step::Pass { hours }),
        2 => any::<bool>().prop_map(|cache_is_lost| Step::Restart { cache_is_lost }),
    ]
}

/// Puts what is missing of these chunks, several to a block.
fn put_together(
    house: &House,
    session: &SessionId,
    chunks: &[String],
    bytes: usize,
    together: usize,
) {
    let ids: Vec<ObjectId> = chunks.iter().map(|chunk| id(chunk)).collect();
    let missing = house.repository().missing(session, &ids).unwrap();
    let missing: BTreeSet<ObjectId> =
        ids.iter().zip(missing).filter(|(_, missing)| *missing).map(|(id, _)| *id).collect();
    for group in missing.into_iter().collect::<Vec<_>>().chunks(together) {
        let block = house.forge.chunks_of_bytes(group, bytes);
        house.repository().put_blocks(session, &[block]).unwrap();
    }
}

fn history(steps: &[Step]) {
    let mut house = House::new();
    let mut kept: BTreeMap<RecordHash, Vec<ObjectId>> = BTreeMap::new();
    let mut references = References::new();
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Snapshot { root, chunks, kib, together } => {
                let chunks: Vec<_> = chunks.iter().map(|chunk| format!("chunk {chunk}")).collect();
                // A root has the same chunks whenever it comes.
                let root = format!("{root} over {chunks:?}");
                references.insert(id(&root), chunks.iter().map(|name| id(name)).collect());
                let session = house.session(&[]);
                put_together(&house, &session, &chunks, usize::from(*kib) << 10, *together);
                house.put(&session, &root, &chunks, 100);
                let snapshot = house.try_commit(&session, &root).unwrap();
                let objects = chunks.iter().chain([&root]).map(|name| id(name)).collect();
                kept.insert(snapshot, objects);
            }
            Step::Abandon { chunks } => {
                let chunks: Vec<_> = chunks.iter().map(|chunk| format!("chunk {chunk}")).collect();
                let session = house.session(&[]);
                let root = format!("abandoned {number}");
                references.insert(id(&root), chunks.iter().map(|name| id(name)).collect());
                house.put(&session, &root, &chunks, 1000);
                house.repository().close_session(&session).unwrap();
            }
            Step::Forget(which) => {
                let chosen = kept.keys().nth(usize::from(*which) % kept.len().max(1)).copied();
                if let Some(chosen) = chosen {
                    house.repository().forget(&[chosen]).unwrap();
                    kept.remove(&chosen);
                }
            }
            Step::Prune => drop(house.prune()),
            Step::PruneWithGrace => {
                with_grace(&house.store());
                house.world.restart();
            }
            Step::Compact { hold } => {
                let store = house.store();
                let (sparse, superseded) = compact(&store, &house.forge, &references, *hold);
                let all = superseded.map_or(0, |superseded| superseded.blocks);
                assert_eq!(all, sparse, "everything was put again");
                drop(store);
                house.world.restart();
            }
            Step::Settle { go } => {
                let store = house.store();
                for number in store.held_supersessions().unwrap() {
                    match go {
                        true => assert!(store.let_superseded_go(number).unwrap()),
                        false => store.take_superseded_back(number).unwrap(),
                    }
                }
                drop(store);
                house.world.restart();
            }
            Step::Pass { hours } => house.world.clock.advance_ns(i64::from(*hours) * HOUR_NS),
            Step::Restart { cache_is_lost } => {
                house.world.close();
                if *cache_is_lost && house.world.cache_dir().exists() {
                    fs::remove_dir_all(house.world.cache_dir()).unwrap();
                }
                house.world.restart();
            }
        }
        house.assert_whole();
    }
    for objects in kept.values() {
        objects.iter().for_each(|object| assert!(house.has(*object)));
    }
    // All that is left is what is needed, once everything has lapsed and nothing is held.
    house.world.clock.advance_ns(30 * 24 * HOUR_NS);
    let store = house.store();
    for number in store.held_supersessions().unwrap() {
        store.let_superseded_go(number).unwrap();
    }
    drop(store);
    house.world.restart();
    house.prune();
    house.prune();
    house.assert_whole();
    for objects in kept.values() {
        objects.iter().for_each(|object| assert!(house.has(*object)));
    }
    if kept.is_empty() {
        assert_eq!(house.repository().usage().unwrap().objects, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, max_shrink_iters: 200, ..ProptestConfig::default() })]
    #[test]
    fn whatever_is_forgotten_and_pruned_every_other_snapshot_stays_whole(
        steps in proptest::collection::vec(step(), 1..25)
    ) {
        history(&steps);
    }
}

#[test]
fn a_machine_may_not_delete_what_a_server_keeps() {
    let mut house = House::new();
    let first = house.snapshot("one", &names(0..2), 100);
    let store = house.store();
    let machine = store.for_machine(MACHINE, TestKey::from_seed(&MACHINE_SEED).public());
    for refused in [machine.forget(&[first]).err(), machine.prune(false).err()] {
        assert!(matches!(refused, Some(RepositoryError::NotAllowed { .. })), "{refused:?}");
    }
}

#[test]
fn a_parent_that_was_pruned_in_part_closes_nothing() {
    let mut house = House::new();
    let session = house.session(&[]);
    let (lost, kept) = (id("chunk 0"), id("chunk 1"));
    for chunk in [lost, kept] {
        let block = house.forge.chunks_of_bytes(&[chunk], 5 << 20);
        house.repository().put_blocks(&session, &[block]).unwrap();
    }
    // Both roots lie in one block, so that the one that is needed keeps the other one there.
    let nodes = house.forge.nodes(&[(id("one"), &[lost]), (id("two"), &[kept])]);
    house.repository().put_blocks(&session, &[nodes]).unwrap();
    let first = house.try_commit(&session, "one").unwrap();
    let session = house.session(&[]);
    house.try_commit(&session, "two").unwrap();
    house.repository().forget(&[first]).unwrap();
    house.prune();
    assert!(house.has(id("one")) && !house.has(lost));
    // The client listed snapshots before the first one was forgotten.
    let session = house.session(&[first]);
    house.prune();
    let node = house.forge.nodes(&[(id("new"), &[id("one")])]);
    house.repository().put_blocks(&session, &[node]).unwrap();
    assert_eq!(house.try_commit(&session, "new"), Err(vec![lost]));
    house.assert_whole();
}
