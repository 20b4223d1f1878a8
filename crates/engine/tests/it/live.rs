//! Sources that change while they are backed up.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, symlink};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdall_engine::{
    BackupOptions, BackupSummary, Dump, EngineError, RestoreOptions, Run, Source,
    UnlockedRepository, backup, restore, snapshots,
};
use holdall_testkit::Random;

use crate::meddling::Meddling;
use crate::world::{World, newest, verified, write};

/// More than is ever in flight: what comes after so much is not read when the first block is put.
const BULK_FILES: usize = 768;
const BULK_FILE_BYTES: usize = 128 << 10;

/// Fills `dir` with files that come before all others and keep a backup busy.
fn write_bulk(dir: &Path) {
    for number in 0..BULK_FILES {
        let byte = u8::try_from(number % 251).unwrap();
        let mut content = vec![byte; BULK_FILE_BYTES];
        content[..8].copy_from_slice(&number.to_le_bytes());
        write(&dir.join(format!("a-{number:04}")), &content);
    }
}

/// Backs up while `deed` is done in the middle; how it ended, and whose run it was.
fn meddled(
    world: &World,
    deed: impl FnOnce() + Send + 'static,
) -> (Result<BackupSummary, EngineError>, Arc<Run>) {
    let run = Arc::new(Run::new());
    let access = world.access_through(|repository| Meddling::new(repository, deed));
    let options = BackupOptions { cores: 1, streams: 1, ..world.options() };
    (backup(&access, &options, &run), run)
}

/// The problems of a run: names below the source, and reasons.
fn problems(world: &World, run: &Run) -> Vec<(PathBuf, String)> {
    let below = |path: &[u8]| {
        let path = Path::new(std::ffi::OsStr::from_bytes(path));
        path.strip_prefix(world.source()).unwrap().to_owned()
    };
    let all = run.take_problems().into_iter();
    let mut all: Vec<_> = all.map(|problem| (below(&problem.path), problem.reason)).collect();
    all.sort();
    all
}

/// Everything stored opens, with the ids that it should have.
fn assert_verifies(access: &UnlockedRepository) {
    let report = verified(access);
    assert_eq!((report.damaged.len(), report.damaged_path_count), (0, 0));
}

#[test]
fn what_changes_between_listing_and_reading_is_told_or_taken_as_it_is_by_then() {
    let world = World::new();
    let top = world.source();
    write_bulk(&top);
    for name in ["gone", "to-dir", "to-link", "grown", "shrunk", "replaced"] {
        write(&top.join(name), name.as_bytes());
    }
    symlink("nowhere", top.join("link-to-file")).unwrap();
    for name in ["z-dir-gone", "z-dir-to-file", "z-dir-to-link"] {
        fs::create_dir(top.join(name)).unwrap();
        write(&top.join(name).join("inside"), b"inside");
    }
    let changed = top.clone();
    let (summary, run) = meddled(&world, move || {
        let at = |name: &str| changed.join(name);
        for name in ["gone", "to-dir", "to-link", "link-to-file"] {
            fs::remove_file(at(name)).unwrap();
        }
        for name in ["z-dir-gone", "z-dir-to-file", "z-dir-to-link"] {
            fs::remove_dir_all(at(name)).unwrap();
        }
        fs::create_dir(at("to-dir")).unwrap();
        symlink("gone", at("to-link")).unwrap();
        symlink("gone", at("z-dir-to-link")).unwrap();
        for name in ["link-to-file", "z-dir-to-file", "new-name", "replaced"] {
            write(&at(name), b"by then a file");
        }
        write(&at("grown"), &[7; 300_000]);
        write(&at("shrunk"), b"");
    });
    let summary = summary.unwrap();
    assert_eq!(
        problems(&world, &run),
        [("to-dir".into(), "not read: it became a directory while the backup ran".to_owned()),]
    );
    assert_eq!((summary.problems, run.take_changed()), (1, vec![]));
    let gone =
        ["gone", "z-dir-gone"].map(|name| top.join(name).into_os_string().into_encoded_bytes());
    let mut vanished = run.take_vanished();
    vanished.sort();
    assert_eq!((summary.files_vanished, vanished), (2, gone.to_vec()));

    // All that is there is as it is now, save for what appeared after the listing.
    let target = world.restore("target");
    fs::remove_dir(top.join("to-dir")).unwrap();
    fs::remove_file(top.join("new-name")).unwrap();
    let mut differences = world.compare(&target);
    // The folder itself changed after it was listed.
    differences.retain(|difference| !difference.path.is_empty());
    assert_eq!(differences, []);
    assert_verifies(&world.access());
}

/// Backs up one file of noise, which the deed changes while it is read; what was stored of it.
fn read_while(offset: u64, deed: fn(&File)) -> (World, File) {
    let world = World::new();
    let path = world.source().join("file");
    let file = File::create(&path).unwrap();
    if offset > 0 {
        file.write_all_at(b"before the hole", 1 << 20).unwrap();
    }
    file.write_all_at(&noise(), offset).unwrap();
    let (summary, run) = meddled(&world, move || deed(&file));
    assert_eq!((summary.unwrap().files_unsettled, problems(&world, &run)), (1, vec![]));
    assert_eq!(run.take_changed(), [path.as_os_str().as_bytes()]);
    assert_verifies(&world.access());
    let restored = File::open(world.restore("target").join("file")).unwrap();
    (world, restored)
}

fn noise() -> Vec<u8> {
    Random::new(3).bytes(BULK_FILES * BULK_FILE_BYTES)
}

/// Checks that what was stored from `offset` on is how the noise begins, up to somewhere after `least`
/// bytes of it and before its end.
fn assert_begins(restored: &File, offset: u64, least: usize) {
    let noise = noise();
    let mut stored = vec![0; usize::try_from(restored.metadata().unwrap().len() - offset).unwrap()];
    restored.read_exact_at(&mut stored, offset).unwrap();
    assert!((least..noise.len()).contains(&stored.len()), "{} bytes", stored.len());
    assert!(stored == noise[..stored.len()], "what was stored never was in the file");
}

#[test]
fn a_file_that_is_cut_short_while_it_is_read_ends_where_it_ended() {
    let (world, restored) = read_while(0, |file| file.set_len(1 << 20).unwrap());
    assert_begins(&restored, 0, 1 << 20);
    // It is read again, though nothing changed since.
    let again = world.backup();
    assert_eq!((again.files_changed, again.files_unsettled), (1, 0));
    assert_eq!(world.differences("again"), []);
}

#[test]
fn a_sparse_file_that_is_cut_short_while_it_is_read_ends_where_it_ended() {
    let offset = 2 << 30;
    let (_, restored) = read_while(offset, |file| file.set_len((2 << 30) + 4096).unwrap());
    assert_begins(&restored, offset, 4096);
    let mut start = [0; 15];
    restored.read_exact_at(&mut start, 1 << 20).unwrap();
    assert_eq!(&start, b"before the hole");
}

#[test]
fn a_file_that_grows_while_it_is_read_has_the_size_that_it_had() {
    let (_, restored) = read_while(0, |file| {
        let end = file.metadata().unwrap().len();
        file.write_all_at(b"more", end).unwrap();
    });
    assert_eq!(restored.metadata().unwrap().len(), noise().len() as u64);
}

#[test]
fn a_small_file_that_ends_before_its_size_has_the_size_of_what_was_read() {
    // The kernel says of these that they have a page.
    let short = Path::new("/sys/devices/system/cpu/online");
    let Ok(content) = fs::read(short) else { return };
    assert!(fs::metadata(short).unwrap().len() > content.len() as u64);
    let world = World::new();
    let path = short.as_os_str().as_bytes().to_vec();
    let source = Source { path: path.clone(), read_at: path.clone() };
    world.backup_with(&BackupOptions { sources: vec![source], ..world.options() });
    let access = world.access();
    let snapshot = newest(&access, None);
    let dump = Dump::find(&access, &snapshot, &path).unwrap();
    let mut dumped = Vec::new();
    dump.write(&mut dumped, &Run::new()).unwrap();
    assert_eq!(dumped, content);
}

#[test]
fn a_source_that_is_empty_and_was_not_is_told_once_and_the_rest_is_backed_up() {
    let world = World::new();
    let (disk, other) = (world.source().join("disk"), world.source().join("other"));
    for dir in [&disk, &other] {
        fs::create_dir(dir).unwrap();
        write(&dir.join("file"), b"content");
    }
    fs::create_dir(disk.join("below")).unwrap();
    let mut options = world.options();
    // The disk is named, though it lies in another source too.
    options.sources = [&world.source(), &disk]
        .map(|path| path.as_os_str().as_bytes().to_vec())
        .map(|path| holdall_engine::Source { path: path.clone(), read_at: path })
        .to_vec();
    world.backup_with(&options);
    fs::remove_dir_all(&disk).unwrap();
    fs::create_dir(&disk).unwrap();
    let run = Arc::new(Run::new());
    let summary = backup(&world.access(), &options, &run).unwrap();
    assert_eq!((summary.problems, summary.files_new + summary.files_unmodified), (1, 1));
    let (path, reason) = problems(&world, &run).remove(0);
    assert_eq!(path, Path::new("disk"));
    assert!(reason.contains("has 2 items in it"), "{reason}");
    // What it was is in the snapshot before; from now on it is an empty folder.
    world.backup_with(&options);
    assert_eq!(snapshots(&world.access()).unwrap().snapshots.len(), 3);
}

#[test]
fn what_was_read_and_not_acknowledged_does_not_count_as_done() {
    let world = World::new();
    write_bulk(&world.source());
    for number in 0..100 {
        write(&world.source().join(format!("tiny-{number}")), b"in the entry");
    }
    // Items and bytes that were done when the first block was put.
    let (run, seen) = (Arc::new(Run::new()), Arc::new([u64::MAX, u64::MAX].map(AtomicU64::new)));
    let (looked_at, at_first_put) = (Arc::clone(&run), Arc::clone(&seen));
    let access = world.access_through(|repository| {
        Meddling::new(repository, move || {
            let done = [&looked_at.items, &looked_at.bytes];
            for (at_first_put, done) in at_first_put.iter().zip(done) {
                at_first_put.store(done.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        })
    });
    let options = BackupOptions { cores: 1, streams: 1, ..world.options() };
    let summary = backup(&access, &options, &run).unwrap();
    let seen = seen.each_ref().map(|seen| seen.load(Ordering::Relaxed));
    assert_eq!(seen, [0, 0], "nothing was acknowledged when it was first put");
    let done = [&run.items, &run.bytes].map(|done| done.load(Ordering::Relaxed));
    assert_eq!(done, [summary.items, summary.bytes], "all of it is, once it was committed");

    // What the repository has already is done as soon as it says so, and no less.
    let again = Arc::new(Run::new());
    let options = BackupOptions { read_all: true, ..options };
    let summary = backup(&access, &options, &again).unwrap();
    let done = [&again.items, &again.bytes].map(|done| done.load(Ordering::Relaxed));
    assert_eq!(done, [summary.items, summary.bytes]);
}

#[test]
fn a_run_stops_inside_a_large_file() {
    let world = World::new();
    write(&world.source().join("large"), &Random::new(9).bytes(96 << 20));
    let run = Arc::new(Run::new());
    let stopped = Arc::clone(&run);
    let access =
        world.access_through(|repository| Meddling::new(repository, move || stopped.stop()));
    let ended = backup(&access, &world.options(), &run);
    assert!(matches!(ended, Err(EngineError::Interrupted)), "{ended:?}");
    assert!(run.bytes.load(Ordering::Relaxed) < 96 << 20, "the file was read to its end");
    assert!(snapshots(&world.access()).unwrap().snapshots.is_empty());
}

#[test]
fn a_stage_that_panics_ends_the_run_and_nothing_is_committed() {
    let world = World::new();
    write(&world.source().join("large"), &Random::new(9).bytes(96 << 20));
    let ended = catch_unwind(AssertUnwindSafe(|| meddled(&world, || panic!("as planned"))));
    assert!(ended.is_err());
    assert!(snapshots(&world.access()).unwrap().snapshots.is_empty());
    world.backup();
    assert_eq!(world.differences("target"), []);
}

#[test]
fn restoring_after_a_vanished_directory_gives_no_ghost_of_it() {
    let world = World::new();
    write_bulk(&world.source());
    fs::create_dir(world.source().join("z")).unwrap();
    let gone = world.source().join("z");
    let (summary, _) = meddled(&world, move || fs::remove_dir(gone).unwrap());
    assert_eq!(summary.unwrap().dirs_new as usize, 1 + world.source().ancestors().count() - 2);
    let (access, target) = (world.access(), world.path("target"));
    let path = world.source();
    let path = Some(path.as_os_str().as_bytes());
    let snapshot = newest(&access, None);
    restore(&access, &snapshot, path, &target, &RestoreOptions::default(), &Run::new()).unwrap();
    assert!(!target.join("z").exists());
}
