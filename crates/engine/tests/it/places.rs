//! Runs that are told where to look: their snapshots are those of runs that look at everything.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdall_engine::{
    BackupOptions, BackupSummary, Changes, ExcludeRules, FullWalk, Patterns, Place, Run, Source,
    Walked, backup,
};
use holdall_format::{ObjectId, RecordHash};
use holdall_testkit::{RandomTreeSizes, mutate_tree, random_tree};

use crate::world::{World, newest, write};

const RECORDED: &str = "/data/files";

/// One source that is backed up into two repositories with the same keys, one of which is never told where to
/// look.
struct Twins {
    told: World,
    untold: World,
    options: BackupOptions,
    last: Option<RecordHash>,
    seen: BTreeMap<PathBuf, Facts>,
}

/// What shows that a path changed.
type Facts = (u64, u32, (u32, u32), u64, u64, (i64, i64), (i64, i64));

/// What a run made: its root, and what it counted.
#[derive(Debug, PartialEq, Eq)]
struct Made {
    root: ObjectId,
    files: (u64, u64, u64),
    dirs: (u64, u64, u64),
    items: u64,
    bytes: u64,
}

impl Twins {
    fn new() -> Self {
        let told = World::new();
        let read_at = told.source().as_os_str().as_bytes().to_vec();
        let sources = vec![Source { path: RECORDED.as_bytes().to_vec(), read_at }];
        // All was written just now, and is to count as settled.
        let options = BackupOptions { sources, settling_seconds: -1, ..told.options() };
        let seen = BTreeMap::new();
        Self { told, untold: World::new(), options, last: None, seen }
    }

    /// Some folders of files, backed up once.
    fn with_folders() -> Self {
        let mut twins = Self::new();
        for folder in ["a", "a/deep", "b", "b/deep", "c"] {
            fs::create_dir(twins.file(folder)).unwrap();
            for number in 0..40 {
                let name = format!("{folder}/file{number:02}");
                write(&twins.file(&name), name.as_bytes());
            }
        }
        twins.run(None);
        twins
    }

    fn file(&self, name: &str) -> PathBuf {
        self.told.source().join(name)
    }

    /// Backs up into both. The twin that is told looks at these places, or at everything that changed since the
    /// last time.
    fn run(&mut self, places: Option<Vec<Place>>) -> BackupSummary {
        let now = look(&self.told.source());
        let places = places.unwrap_or_else(|| changed(&self.seen, &now));
        let changes = self.last.map(|since| Changes { since, places });
        let told = BackupOptions { changes, ..self.options.clone() };
        let (summary, with) = made(&self.told, &told);
        let (_, without) = made(&self.untold, &self.options);
        assert_eq!(with, without, "{:?}, {:?}", summary.walked, told.changes);
        (self.last, self.seen) = (summary.snapshot_id, now);
        summary
    }
}

fn made(world: &World, options: &BackupOptions) -> (BackupSummary, Made) {
    let summary = world.backup_with(options);
    let made = Made {
        root: newest(&world.access(), None).root,
        files: (summary.files_new, summary.files_changed, summary.files_unmodified),
        dirs: (summary.dirs_new, summary.dirs_changed, summary.dirs_unmodified),
        items: summary.items,
        bytes: summary.bytes,
    };
    (summary, made)
}

fn facts(seen: &Metadata) -> Facts {
    let (modified, changed) =
        ((seen.mtime(), seen.mtime_nsec()), (seen.ctime(), seen.ctime_nsec()));
    let owners = (seen.uid(), seen.gid());
    (seen.ino(), seen.mode(), owners, seen.nlink(), seen.size(), modified, changed)
}

/// All that is below a folder, and itself, as they are recorded.
fn look(folder: &Path) -> BTreeMap<PathBuf, Facts> {
    let mut seen = BTreeMap::new();
    let mut waiting = vec![(folder.to_path_buf(), PathBuf::from(RECORDED))];
    while let Some((path, recorded)) = waiting.pop() {
        let there = path.symlink_metadata().unwrap();
        if there.is_dir() {
            let entries = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap());
            waiting.extend(entries.map(|entry| (entry.path(), recorded.join(entry.file_name()))));
        }
        seen.insert(recorded, facts(&there));
    }
    seen
}

/// The folders of all paths that are not as they were.
fn changed(before: &BTreeMap<PathBuf, Facts>, now: &BTreeMap<PathBuf, Facts>) -> Vec<Place> {
    let is_other = |path: &&PathBuf| before.get(*path) != now.get(*path);
    let paths = before.keys().chain(now.keys()).filter(is_other);
    let mut places: Vec<_> = paths.map(|path| flat(path.parent().unwrap())).collect();
    places.sort();
    places.dedup();
    places
}

fn place(name: &str) -> Place {
    flat(&Path::new(RECORDED).join(name))
}

fn flat(directory: &Path) -> Place {
    Place { directory: directory.to_path_buf(), is_deep: false }
}

#[test]
fn random_trees_and_their_mutations_are_the_same_by_the_places_that_changed() {
    let (mut by_journal, mut adopted, mut rounds) = (0, 0, 0);
    for seed in 0..6 {
        let mut twins = Twins::new();
        let sizes = RandomTreeSizes { entries: 400, ..RandomTreeSizes::default() };
        random_tree(&twins.told.source(), seed, &sizes).unwrap();
        twins.run(None);
        for round in 0..6 {
            mutate_tree(&twins.told.source(), seed * 10 + round, 4).unwrap();
            let summary = twins.run(None);
            rounds += 1;
            by_journal += u32::from(summary.walked == Walked::Journal);
            adopted += summary.leaves_adopted;
            let doubt = summary.walked.reason();
            assert!(doubt.is_none_or(|why| why == FullWalk::NewLink), "{doubt:?}");
        }
    }
    assert!(by_journal > rounds / 2, "{by_journal} of {rounds}");
    assert!(adopted > 200, "{adopted} leaves");
}

#[test]
fn an_unchanged_source_is_taken_over_but_for_the_ends() {
    let mut twins = Twins::with_folders();
    let walked = twins.run(None);
    let told = twins.run(Some(Vec::new()));
    assert_eq!(
        (told.walked, told.files_unmodified, told.dirs_unmodified),
        (Walked::Journal, 200, 7)
    );
    assert!(told.leaves_adopted + 4 > walked.leaves_adopted && told.leaves_adopted > 10);
}

#[test]
fn what_is_not_named_is_not_looked_at() {
    let twins = Twins::with_folders();
    write(&twins.file("a/file07"), b"named");
    write(&twins.file("b/deep/file07"), b"not named");
    let changes = Some(Changes { since: twins.last.unwrap(), places: vec![place("a")] });
    let told = BackupOptions { changes, ..twins.options.clone() };
    let (summary, _) = made(&twins.told, &told);
    assert_eq!((summary.files_changed, summary.walked), (1, Walked::Journal));
    assert_eq!(made(&twins.told, &twins.options).0.files_changed, 1);
}

#[test]
fn what_is_not_settled_is_looked_at_in_every_run() {
    let mut twins = Twins::with_folders();
    twins.options.settling_seconds = 1000;
    twins.run(None);
    write(&twins.file("a/file07"), b"a change");
    twins.run(None);
    write(&twins.file("a/file07"), b"another");
    let summary = twins.run(Some(Vec::new()));
    assert_eq!((summary.files_changed, summary.walked), (1, Walked::Journal));
}

#[test]
fn a_file_with_several_names_is_looked_at_in_every_run() {
    let mut twins = Twins::with_folders();
    let (outside, within) = (twins.told.path("outside"), twins.file("b/deep/file07"));
    fs::hard_link(&within, &outside).unwrap();
    // It is new that it has two.
    assert_eq!(twins.run(None).walked, Walked::Full(Some(FullWalk::NewLink)));
    write(&outside, b"by a name that nobody watches");
    let summary = twins.run(Some(Vec::new()));
    assert_eq!((summary.files_changed, summary.walked), (1, Walked::Journal));
    fs::remove_file(outside).unwrap();
    let summary = twins.run(Some(Vec::new()));
    assert_eq!((summary.files_changed, summary.walked), (1, Walked::Journal));
}

#[test]
fn a_new_name_has_the_other_one_looked_for_everywhere() {
    let mut twins = Twins::with_folders();
    fs::hard_link(twins.file("a/deep/file01"), twins.file("c/link")).unwrap();
    let summary = twins.run(Some(vec![place("c")]));
    assert_eq!(summary.walked, Walked::Full(Some(FullWalk::NewLink)));
    assert_eq!(summary.files_changed, 1, "the name that was there");
}

#[test]
fn directories_that_are_new_or_others_are_looked_at_whole() {
    let mut twins = Twins::with_folders();
    fs::create_dir_all(twins.file("a/new/below")).unwrap();
    write(&twins.file("a/new/below/file"), b"new");
    // Made before the other is removed, or it might get that one's inode.
    fs::create_dir(twins.file("other")).unwrap();
    write(&twins.file("other/file07"), b"in another directory");
    fs::remove_dir_all(twins.file("b/deep")).unwrap();
    fs::rename(twins.file("other"), twins.file("b/deep")).unwrap();
    fs::rename(twins.file("c"), twins.file("b/c")).unwrap();
    let summary = twins.run(Some(vec![flat(Path::new(RECORDED)), place("a"), place("b")]));
    assert_eq!(summary.walked, Walked::Journal);
    // And a file in the place of a directory, and the other way round.
    fs::remove_dir_all(twins.file("b/deep")).unwrap();
    write(&twins.file("b/deep"), b"a file");
    fs::remove_file(twins.file("a/file05")).unwrap();
    fs::create_dir(twins.file("a/file05")).unwrap();
    write(&twins.file("a/file05/within"), b"new");
    assert_eq!(twins.run(None).walked, Walked::Journal);
}

#[test]
fn a_deep_place_is_looked_at_whole_also_above_the_source() {
    let mut twins = Twins::with_folders();
    write(&twins.file("b/deep/file07"), b"one");
    let deep = |directory: &str| Place { directory: directory.into(), is_deep: true };
    assert_eq!(twins.run(Some(vec![deep("/data/files/b")])).walked, Walked::Journal);
    write(&twins.file("c/file07"), b"two");
    write(&twins.file("a/deep/file07"), b"three");
    assert_eq!(twins.run(Some(vec![deep("/data")])).files_changed, 2);
}

#[test]
fn places_that_are_left_out_or_not_there_are_passed() {
    let mut twins = Twins::with_folders();
    let mut patterns = Patterns::below(b"/");
    patterns.add(b"deep", false).unwrap();
    let exclude = ExcludeRules { patterns, ..ExcludeRules::default() };
    let exclude_patterns = vec!["deep".to_owned()];
    twins.options = BackupOptions { exclude, exclude_patterns, ..twins.options };
    let summary = twins.run(None);
    assert_eq!(summary.walked, Walked::Full(Some(FullWalk::OtherOptions)));
    write(&twins.file("a/deep/file07"), b"left out");
    fs::create_dir(twins.file("a/deep/more")).unwrap();
    write(&twins.file("a/file03"), b"a change");
    let elsewhere = [flat(Path::new("/dat")), flat(Path::new("/data/files.txt"))];
    let named = ["a", "a/deep", "a/deep/more", "a/gone/gone", "b/file07", "zz"].map(place);
    let summary = twins.run(Some(elsewhere.into_iter().chain(named).collect()));
    assert_eq!((summary.walked, summary.files_changed), (Walked::Journal, 1));
    assert_eq!(summary.rules_unmatched, [""; 0]);
}

#[test]
fn a_place_that_was_no_directory_has_its_folder_looked_at() {
    let mut twins = Twins::with_folders();
    // Something was mounted on a file, and is not any more.
    write(&twins.file("b/file07"), b"a change below the mount");
    write(&twins.file("b/file39"), b"a change behind it");
    fs::create_dir(twins.file("c/new")).unwrap();
    write(&twins.file("c/new/file"), b"in a folder that was left out");
    let deep = |name: &str| Place { is_deep: true, ..place(name) };
    let summary = twins.run(Some(vec![deep("b/file07"), deep("c/new")]));
    assert_eq!((summary.walked, summary.files_changed, summary.files_new), (Walked::Journal, 2, 1));
}

#[test]
fn rules_of_a_folder_hold_for_what_is_new_in_it() {
    let mut twins = Twins::with_folders();
    write(&twins.file(".holdallignore"), b"*.tmp\n");
    write(&twins.file("b/.holdallignore"), b"/deep/*.log\n");
    twins.run(Some(vec![Place { directory: RECORDED.into(), is_deep: true }]));
    write(&twins.file("b/deep/new.tmp"), b"left out");
    write(&twins.file("b/deep/new.log"), b"left out");
    write(&twins.file("b/deep/new.txt"), b"taken");
    let summary = twins.run(Some(vec![place("b/deep")]));
    assert_eq!(
        (summary.walked, summary.files_new, summary.items_left_out),
        (Walked::Journal, 1, 2)
    );
}

#[test]
fn a_folder_that_gets_a_tag_loses_its_content_and_gets_it_back() {
    let mut twins = Twins::with_folders();
    twins.options.exclude.if_present = vec![b".nobackup".to_vec()];
    twins.run(None);
    write(&twins.file("b/.nobackup"), b"");
    let summary = twins.run(None);
    assert_eq!((summary.walked, summary.items), (Walked::Journal, 207 - 81));
    fs::remove_file(twins.file("b/.nobackup")).unwrap();
    let summary = twins.run(None);
    assert_eq!((summary.walked, summary.items), (Walked::Journal, 207));
}

#[test]
fn several_sources_are_each_looked_at_where_they_changed() {
    let mut twins = Twins::with_folders();
    let folder = twins.told.source();
    let source = |name: &str| Source {
        path: format!("{RECORDED}/{name}").into_bytes(),
        read_at: folder.join(name).as_os_str().as_bytes().to_vec(),
    };
    twins.options.sources = vec![source("a"), source("b/deep"), source("c/file07")];
    twins.run(None);
    write(&twins.file("b/deep/file07"), b"a change");
    write(&twins.file("c/file07"), b"a change");
    let summary = twins.run(Some(vec![place("b/deep"), place("c")]));
    assert_eq!((summary.walked, summary.files_changed), (Walked::Journal, 2));
    twins.options.sources.push(source("a/deep"));
    twins.run(None);
    assert_eq!(twins.run(None).walked, Walked::Full(Some(FullWalk::NestedSources)));
}

#[test]
fn a_source_that_is_another_folder_is_looked_at_whole() {
    let mut twins = Twins::with_folders();
    let (source, aside) = (twins.told.source(), twins.told.path("aside"));
    fs::rename(&source, &aside).unwrap();
    fs::create_dir(&source).unwrap();
    fs::create_dir(source.join("a")).unwrap();
    write(&source.join("a/file07"), b"another");
    assert_eq!(twins.run(Some(Vec::new())).items, 4);
}

#[test]
fn a_folder_that_the_places_do_not_explain_has_everything_looked_at() {
    let mut twins = Twins::with_folders();
    fs::rename(twins.file("b"), twins.file("aside")).unwrap();
    fs::create_dir_all(twins.file("b/deep")).unwrap();
    let summary = twins.run(Some(vec![place("b/deep")]));
    assert_eq!(summary.walked, Walked::Full(Some(FullWalk::Unfit)));
}

#[test]
fn a_dry_run_counts_the_same() {
    let mut twins = Twins::with_folders();
    write(&twins.file("b/deep/file07"), b"a change");
    let changes = Some(Changes { since: twins.last.unwrap(), places: vec![place("b/deep")] });
    let dry = BackupOptions { changes, dry_run: true, ..twins.options.clone() };
    let summary = twins.told.backup_with(&dry);
    assert_eq!((summary.walked, summary.items), (Walked::Journal, 207));
    assert_eq!((summary.files_changed, summary.files_unmodified), (1, 199));
    assert_eq!(twins.run(None).walked, Walked::Journal);
}

#[test]
fn whatever_does_not_fit_has_everything_looked_at() {
    let mut twins = Twins::with_folders();
    let first = twins.last.unwrap();
    twins.run(None);
    let changes = |since| Some(Changes { since, places: Vec::new() });
    let told = BackupOptions { changes: changes(twins.last.unwrap()), ..twins.options.clone() };
    let why = |twins: &Twins, options: BackupOptions| {
        let options = BackupOptions { dry_run: true, ..options };
        twins.told.backup_with(&options).walked.reason()
    };
    assert_eq!(why(&twins, told.clone()), None);
    let other = BackupOptions { changes: changes(first), ..told.clone() };
    assert_eq!(why(&twins, other), Some(FullWalk::OtherSnapshot));
    let reading = BackupOptions { read_all: true, ..told.clone() };
    assert_eq!(why(&twins, reading), Some(FullWalk::WantsAll));
    let host = BackupOptions { host: "other".to_owned(), ..told.clone() };
    assert_eq!(why(&twins, host), Some(FullWalk::NothingRemembered));
    let run = Arc::new(Run::new());
    run.watch_items(true, |_, _| ());
    let watched = BackupOptions { dry_run: true, ..told.clone() };
    let watched = backup(&twins.told.access(), &watched, &run).unwrap();
    assert_eq!(watched.walked, Walked::Full(Some(FullWalk::WantsAll)));
    let cache = fs::read_dir(twins.told.path("cache")).unwrap().next().unwrap().unwrap().path();
    let leaves = fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path());
    let is_leaves = |path: &PathBuf| path.to_str().unwrap().contains("leaves-");
    leaves.filter(is_leaves).for_each(|path| fs::remove_file(path).unwrap());
    assert_eq!(why(&twins, told), Some(FullWalk::NothingRemembered));
    assert!(twins.run(None).walked.reason().is_some());
}
