//! What a backup sees, sends and keeps.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use holdall_engine::{
    BackupOptions, EngineError, ExcludeRules, Patterns, RestoreOptions, Run, Source, backup, list,
    restore, snapshots,
};
use holdall_format::limits::RECORD_MAX_EXCLUDES;
use holdall_meter::Layer;
use holdall_testkit::{RandomTreeSizes, mutate_tree, random_tree};

use crate::world::{World, newest, write};

#[test]
fn random_trees_and_their_mutations_restore_identically() {
    for seed in 0..6 {
        let world = World::new();
        random_tree(&world.source(), seed, &RandomTreeSizes::default()).unwrap();
        for round in 0..3 {
            world.backup();
            assert_eq!(
                world.differences(&format!("target{round}")),
                [],
                "seed {seed}, round {round}"
            );
            mutate_tree(&world.source(), seed + round, 12).unwrap();
        }
    }
}

#[test]
fn large_and_sparse_files_restore_identically() {
    let world = World::new();
    let noise: Vec<u8> = (0..9_000_000u32)
        .flat_map(|n| (n.wrapping_mul(2_654_435_761) >> 13).to_le_bytes())
        .collect();
    write(&world.source().join("large"), &noise);
    let sparse = File::create(world.source().join("sparse")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, &noise[..300_000], 5 << 30).unwrap();
    sparse.set_len(3 << 40).unwrap();
    let summary = world.backup();
    assert_eq!(summary.files_new, 2);
    assert!(summary.data_added < 40_000_000, "holes were read: {}", summary.data_added);
    assert_eq!(world.differences("target"), []);
}

/// This crate's own source, or a part of it: made longer ago than it takes a file to settle. It is
/// recorded elsewhere, as the folders above it are recorded too and others may write into them.
fn own_source(below: &str) -> Vec<Source> {
    let path = ["/own", &below.replace('/', "-")].concat().into_bytes();
    vec![Source { path, read_at: [env!("CARGO_MANIFEST_DIR"), below].concat().into_bytes() }]
}

#[test]
fn an_unchanged_tree_sends_no_object_and_gets_the_same_root() {
    let world = World::new();
    let options = BackupOptions { sources: own_source("/src"), ..world.options() };
    let first = world.backup_with(&options);
    assert!(first.files_new > 20 && first.data_stored > 0);
    let again = world.backup_with(&options);
    assert_eq!((again.files_new, again.files_changed, again.dirs_changed), (0, 0, 0));
    assert_eq!((again.data_added, again.data_stored), (0, 0));
    let all = snapshots(&world.access()).unwrap().snapshots;
    assert_eq!(all[0].root, all[1].root);
}

#[test]
fn what_a_repository_in_a_directory_is_asked_for_takes_its_disk_time_and_no_network() {
    let world = World::new();
    write(&world.source().join("file"), b"content");
    let stages = world.backup().stages;
    let layers: Vec<_> =
        stages.iter().filter(|stage| stage.name == "ask").map(|stage| stage.layer).collect();
    assert_eq!(layers, [Layer::ServerDisk]);
}

#[test]
fn an_edit_that_hides_itself_is_seen() {
    let world = World::new();
    let path = world.source().join("file");
    write(&path, b"before");
    let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    world.backup();
    // Same size, same modification time, and within the same tick of the clock as the read.
    write(&path, b"behind");
    File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    let summary = world.backup();
    assert_eq!(summary.files_changed, 1);
    let target = world.restore("target");
    assert_eq!(fs::read(target.join("file")).unwrap(), b"behind");
}

#[test]
fn a_series_begins_with_the_same_paths_of_another_host_and_with_no_other_paths() {
    let world = World::new();
    let of = |below: &str, host: &str| {
        let sources = own_source(below);
        BackupOptions { sources, host: host.to_owned(), ..world.options() }
    };
    assert!(world.backup_with(&of("/src", "lost")).files_new > 20);
    let replaced = world.backup_with(&of("/src", "new"));
    assert_eq!((replaced.files_new, replaced.files_changed, replaced.data_stored), (0, 0, 0));
    assert!(replaced.has_parent);
    let elsewhere = world.backup_with(&of("/src/backup", "new"));
    assert!(!elsewhere.has_parent && elsewhere.files_new > 5);
}

#[test]
fn checkpoints_are_not_listed_and_the_next_run_builds_on_them() {
    let world = World::new();
    for number in 0..1000 {
        write(
            &world.source().join(format!("file{number}")),
            format!("{number} ").repeat(400).as_bytes(),
        );
    }
    let run = Arc::new(Run::new());
    let options = BackupOptions { checkpoint_every: Duration::ZERO, ..world.options() };
    let summary = backup(&world.access(), &options, &run).unwrap();
    assert_eq!(summary.files_new, 1000);
    let all = snapshots(&world.access()).unwrap().snapshots;
    assert_eq!(all.len(), 1);
    assert!(all[0].sequence > 2, "checkpoints are links of the chain: {}", all[0].sequence);
    assert_eq!(world.differences("target"), []);
}

#[test]
fn a_run_that_was_cut_is_gone_on_with_from_its_last_checkpoint() {
    let world = World::new();
    for number in 0..3000 {
        let content = format!("{number} ").repeat(200);
        write(&world.source().join(format!("file{number}")), content.as_bytes());
    }
    // All was written just now, and is to count as settled.
    let settled = || BackupOptions { settling_seconds: -1, ..world.options() };
    let options = BackupOptions { checkpoint_every: Duration::ZERO, ..settled() };
    let (run, access) = (Arc::new(Run::new()), world.access());
    let cut = std::thread::scope(|scope| {
        scope.spawn(|| {
            while run.items.load(Ordering::Relaxed) < 1500 {
                std::thread::yield_now();
            }
            run.stop();
        });
        backup(&access, &options, &run)
    });
    drop(access);
    assert!(matches!(cut, Err(EngineError::Interrupted)), "{cut:?}");
    assert_eq!(snapshots(&world.access()).unwrap().snapshots.len(), 0, "it is none");
    let next = world.backup_with(&settled());
    assert!(next.has_parent && next.files_unmodified >= 1200, "{next:?}");
    assert!(next.files_new <= 1800 && next.files_new + next.files_unmodified == 3000, "{next:?}");
    assert_eq!(world.differences("target"), []);
}

fn excluding(pattern: &str) -> ExcludeRules {
    let mut patterns = Patterns::below(b"/");
    patterns.add(pattern.as_bytes(), false).unwrap();
    ExcludeRules { patterns, ..ExcludeRules::default() }
}

#[test]
fn what_is_excluded_is_left_out_and_the_rest_is_there() {
    let world = World::new();
    for dir in ["keep", "cache", "marked", "local"] {
        fs::create_dir(world.source().join(dir)).unwrap();
        write(&world.source().join(dir).join("file.txt"), b"content");
        write(&world.source().join(dir).join("file.tmp"), b"content");
    }
    let tag = b"Signature: 8a477f597d28d172789f06886806bc55\n";
    write(&world.source().join("cache/CACHEDIR.TAG"), tag);
    write(&world.source().join("marked/.nobackup"), b"");
    write(&world.source().join("local/.holdallignore"), b"file.txt\n");
    let rules = ExcludeRules {
        caches: true,
        if_present: vec![b".nobackup".to_vec()],
        ..excluding("*.tmp")
    };
    world.backup_with(&BackupOptions { exclude: rules, ..world.options() });
    let access = world.access();
    let snapshot = newest(&access, None);
    let mut names = Vec::new();
    let source = world.source();
    list(&access, &snapshot, source.as_os_str().as_bytes(), true, &Run::new(), &mut |entry| {
        let path = String::from_utf8(entry.path.to_vec()).unwrap();
        names.push(path.rsplit_once("source").unwrap().1.to_owned());
        Ok(())
    })
    .unwrap();
    names.retain(|name| !name.is_empty());
    assert_eq!(
        names,
        ["/cache", "/keep", "/keep/file.txt", "/local", "/local/.holdallignore", "/marked"]
    );
}

#[test]
fn a_dry_run_counts_and_commits_nothing() {
    let world = World::new();
    write(&world.source().join("file"), &[1; 5000]);
    let summary = world.backup_with(&BackupOptions { dry_run: true, ..world.options() });
    assert_eq!((summary.files_new, summary.data_added, summary.snapshot_id), (1, 5000, None));
    assert!(snapshots(&world.access()).unwrap().snapshots.is_empty());
}

#[test]
fn a_source_that_is_missing_is_a_problem_and_the_others_are_backed_up() {
    let world = World::new();
    write(&world.source().join("file"), b"content");
    let missing = world.path("missing").as_os_str().as_bytes().to_vec();
    let mut options = world.options();
    options.sources.push(Source { path: missing.clone(), read_at: missing.clone() });
    let run = Arc::new(Run::new());
    let summary = backup(&world.access(), &options, &run).unwrap();
    assert_eq!((summary.files_new, summary.problems), (1, 1));
    assert_eq!(run.take_problems()[0].path, missing);
}

#[test]
fn a_run_that_is_stopped_commits_nothing() {
    let world = World::new();
    write(&world.source().join("file"), b"content");
    let run = Arc::new(Run::new());
    run.stop();
    assert!(backup(&world.access(), &world.options(), &run).is_err());
    assert!(snapshots(&world.access()).unwrap().snapshots.is_empty());
}

#[test]
fn a_source_can_be_recorded_where_it_is_not() {
    let world = World::new();
    write(&world.source().join("file"), b"content");
    let read_at = world.source().as_os_str().as_bytes().to_vec();
    let sources = vec![Source { path: b"/never/there/data".to_vec(), read_at }];
    let options = BackupOptions { sources, ..world.options() };
    world.backup_with(&options);
    let again = world.backup_with(&options);
    assert_eq!((again.dirs_new, again.dirs_changed), (0, 0));
    let access = world.access();
    let snapshot = newest(&access, Some(b"/never/there/data"));
    let (target, run) = (world.path("target"), Run::new());
    restore(&access, &snapshot, None, &target, &RestoreOptions::default(), &run).unwrap();
    assert_eq!(run.take_problems(), []);
    assert_eq!(fs::read(target.join("never/there/data/file")).unwrap(), b"content");
}

#[test]
fn excluded_directories_between_others_are_left_out_alone() {
    let world = World::new();
    for outer in 0..40 {
        for name in ["left-out", "taken"] {
            let dir = world.source().join(format!("{outer}/{name}"));
            fs::create_dir_all(&dir).unwrap();
            write(&dir.join("file"), b"content");
        }
    }
    let exclude = excluding("left-out");
    let summary = world.backup_with(&BackupOptions { exclude, ..world.options() });
    assert_eq!(summary.files_new, 40);
}

#[test]
fn what_does_not_fit_into_a_record_is_not_called_damage() {
    let world = World::new();
    let exclude_patterns = vec!["x".to_owned(); RECORD_MAX_EXCLUDES + 1];
    let options = BackupOptions { exclude_patterns, ..world.options() };
    let error = backup(&world.access(), &options, &Arc::new(Run::new())).unwrap_err();
    assert!(matches!(error, EngineError::Record(_)), "{error}");
}

#[test]
fn long_records_are_all_listed_though_an_answer_is_bounded_in_bytes() {
    let world = World::new();
    let mut random = holdall_testkit::Random::new(3);
    for _ in 0..7 {
        let mut pattern =
            || random.bytes(30_000).iter().map(|byte| format!("{byte:02x}")).collect();
        let exclude_patterns = (0..50).map(|_| pattern()).collect::<Vec<String>>();
        world.backup_with(&BackupOptions { exclude_patterns, ..world.options() });
    }
    // Of more than 10 MB, an answer has 8.
    assert_eq!(snapshots(&world.access()).unwrap().snapshots.len(), 7);
}
