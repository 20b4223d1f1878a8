//! A year of backups every hour, under the rules that a server has without being told others: what is
//! kept is whole, and what is stored does not grow with the number of backups.
//!
//! Time is the store's alone, so a year takes as long as its backups do. `HOLDALL_YEAR_DAYS` and
//! `HOLDALL_YEAR_HOURS` say how many days, and how many hours lie between two backups; `cargo xtask
//! torture` takes 365 and 1.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use holdall_engine::{LockedRepository, Run, backup, compact};
use holdall_format::{RecordHash, TombstoneReason};
use holdall_protocol::{OwnedRepository, Repository};
use holdall_repository::retention::Policy;
use holdall_repository::{PruneOptions, Store};
use holdall_testkit::{FakeClock, Random, setting};

use crate::world::World;

const HOUR_NS: i64 = 3600 * 1_000_000_000;

/// A home folder: documents, a mail folder of small files, a database that changes in places.
fn fill(source: &Path, random: &mut Random) {
    for folder in ["documents", "mail"] {
        fs::create_dir(source.join(folder)).unwrap();
    }
    for number in 0..300 {
        fs::write(source.join(format!("mail/{number:06}")), random.bytes(3000)).unwrap();
    }
    for number in 0..20 {
        fs::write(source.join(format!("documents/{number}")), random.bytes(200_000)).unwrap();
    }
    fs::write(source.join("database"), random.bytes(4_000_000)).unwrap();
}

/// What an hour of work changes.
fn work(source: &Path, hour: i64, random: &mut Random) {
    for number in 0..3 {
        fs::write(source.join(format!("mail/{hour:06}-{number}")), random.bytes(3000)).unwrap();
    }
    let document = source.join(format!("documents/{}", random.below(20)));
    fs::write(document, random.bytes(200_000)).unwrap();
    let mut database = fs::read(source.join("database")).unwrap();
    for _ in 0..3 {
        let at = random.below(database.len() as u64 - 5000) as usize;
        database[at..at + 4096].copy_from_slice(&random.bytes(4096));
    }
    fs::write(source.join("database"), database).unwrap();
}

fn source_bytes(source: &Path) -> u64 {
    let entries = fs::read_dir(source).unwrap().map(|entry| entry.unwrap());
    let length = |entry: fs::DirEntry| match entry.file_type().unwrap().is_dir() {
        true => source_bytes(&entry.path()),
        false => entry.metadata().unwrap().len(),
    };
    entries.map(length).sum()
}

#[test]
fn a_year_of_hourly_backups_stays_small_and_whole() {
    let (days, every) =
        (setting("HOLDALL_YEAR_DAYS", 45) as i64, setting("HOLDALL_YEAR_HOURS", 8) as i64);
    let world = World::new();
    let clock = Arc::new(FakeClock::at(1_700_000_000));
    let dir = world.path("repository");
    let store = Store::open(&dir, &world.path("index"), world.signer(), clock.clone()).unwrap();
    let signing = world.signing();
    let repository: Arc<dyn Repository> =
        Arc::new(store.for_machine(world.machine(), signing.public()));
    let mut random = Random::new(11);
    let source = world.source();
    fill(&source, &mut random);

    let (mut backups, mut sent_bytes) = (0u64, 0u64);
    for hour in (0..days * 24).step_by(every as usize) {
        work(&source, hour, &mut random);
        let place =
            LockedRepository::new(Arc::clone(&repository), signing.clone(), world.path("cache"));
        let access = place.open(world.secret()).unwrap();
        let run = Arc::new(Run::new());
        sent_bytes += backup(&access, &world.options(), &run).unwrap().data_stored;
        backups += 1;
        clock.advance_ns(every * HOUR_NS);
        if hour % 24 < every {
            let goes: Vec<RecordHash> = store
                .judge(&Policy::USUAL, &[])
                .into_iter()
                .filter(|one| one.reasons.is_empty())
                .map(|one| one.id)
                .collect();
            store.forget(&goes, TombstoneReason::Retention).unwrap();
            let grace = Duration::from_secs(24 * 3600);
            let options = PruneOptions { grace, sparse_part: 4 };
            store.prune(&options, &AtomicBool::new(false)).unwrap();
        }
    }
    let kept = store.judge(&Policy::USUAL, &[]).len() as i64;
    let stored = store.usage().stored_bytes;
    let holds = source_bytes(&source);
    println!(
        "{backups} backups in {days} days: {sent_bytes} bytes sealed, {stored} stored, {kept} snapshots \
         kept; the source holds {holds}: stored {:.2} times that",
        stored as f64 / holds as f64
    );
    // Those of the 30 days in which nothing goes and of the day since rules last let any go, and one for each
    // week before.
    let not_due = 31 * 24 / every;
    let weeks = (days - 30).max(0) / 7;
    let due = days.min(30) * 24 / every;
    assert!((due + weeks - 1..=not_due + weeks + 1).contains(&kept), "{kept} of {backups}");
    assert!(days <= 40 || stored < sent_bytes, "{stored} of {sent_bytes}");
    assert_eq!(store.scrub(&AtomicBool::new(false), &mut |_| {}).unwrap().damaged, []);
    drop((repository, store));
    assert_eq!(world.differences("restored"), []);
    assert_compacts(&world, stored);
}

/// What is compacted is less, and still whole.
fn assert_compacts(world: &World, before: u64) {
    let (access, repository) = world.owned();
    repository.prune(false).unwrap();
    let pruned = repository.usage().unwrap().stored_bytes;
    let report = compact(&access, repository.as_ref(), false, &Run::new()).unwrap();
    repository.prune(false).unwrap();
    let stored = repository.usage().unwrap().stored_bytes;
    println!(
        "{before} stored, {pruned} after a prune that takes all it can; {} of {} sparse blocks gave way, \
         {} bytes to {}: {stored} stored",
        report.blocks, report.sparse_blocks, report.before_bytes, report.after_bytes
    );
    assert_eq!(report.damaged_blocks, 0);
    assert!(report.blocks > 0 && stored < pruned, "{report:?}: {pruned}, then {stored}");
    assert_eq!(repository.scrub(&mut |_| {}).unwrap().damaged, []);
    // It holds the directory.
    drop((access, repository));
    assert_eq!(world.differences("compacted"), []);
}
