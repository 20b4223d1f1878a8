//! Leaves that are taken over from the parent: what a snapshot holds is the same as without.

use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use holdall_crypto::{KeyRing, RepositoryKeys};
use holdall_engine::{BackupOptions, BackupSummary, Source};
use holdall_format::ObjectId;
use holdall_testkit::{RandomTreeSizes, mutate_tree, random_tree};
use holdall_tree::{Fingerprints, PathKey};

use crate::world::{World, newest, write};

/// Bytes before the records of a leaf cache that has one block and no list, of one record, and behind them.
const HEADER: usize = 64;
const RECORD: usize = 36;
const CHECK: usize = 16;

/// One source that is backed up into two repositories with the same keys, one of which never knows
/// a leaf again.
struct Pair {
    knowing: World,
    forgetting: World,
    options: BackupOptions,
}

/// What a backup made: its root, and what it counted.
#[derive(Debug, PartialEq, Eq)]
struct Made {
    root: ObjectId,
    files: (u64, u64, u64),
    dirs: (u64, u64, u64),
    items: u64,
    bytes: u64,
}

impl Pair {
    fn new() -> Self {
        let knowing = World::new();
        let read_at = knowing.source().as_os_str().as_bytes().to_vec();
        let sources = vec![Source { path: b"/data/files".to_vec(), read_at }];
        // All was written just now, and is to count as settled.
        let options = BackupOptions { sources, settling_seconds: -1, ..knowing.options() };
        Self { knowing, forgetting: World::new(), options }
    }

    /// A source of files with these names, backed up once.
    fn with_files(names: &[String]) -> Self {
        let pair = Self::new();
        names.iter().for_each(|name| write(&pair.file(name), name.as_bytes()));
        pair.backup();
        pair
    }

    fn file(&self, name: &str) -> PathBuf {
        self.knowing.source().join(name)
    }

    /// Backs up into both and says how many leaves were taken over.
    fn backup(&self) -> u64 {
        if let Some(known) = leaf_cache(&self.forgetting) {
            fs::remove_file(known).unwrap();
        }
        let (summary, with) = backup(&self.knowing, &self.options);
        let (forgetful, without) = backup(&self.forgetting, &self.options);
        assert_eq!((&with, forgetful.leaves_adopted), (&without, 0));
        summary.leaves_adopted
    }

    fn cache_folder(&self) -> PathBuf {
        fs::read_dir(self.knowing.path("cache")).unwrap().next().unwrap().unwrap().path()
    }

    fn cache(&self) -> PathBuf {
        leaf_cache(&self.knowing).unwrap()
    }
}

fn backup(world: &World, options: &BackupOptions) -> (BackupSummary, Made) {
    let summary = world.backup_with(options);
    let counted = &summary;
    let made = Made {
        root: newest(&world.access(), Some(b"/data/files")).root,
        files: (counted.files_new, counted.files_changed, counted.files_unmodified),
        dirs: (counted.dirs_new, counted.dirs_changed, counted.dirs_unmodified),
        items: counted.items,
        bytes: counted.bytes,
    };
    (summary, made)
}

fn leaf_cache(world: &World) -> Option<PathBuf> {
    let repository = fs::read_dir(world.path("cache")).ok()?.next()?.unwrap().path();
    let mut files = fs::read_dir(repository).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.file_name().unwrap().as_bytes().starts_with(b"leaves-"))
}

fn starts_leaf(name: &str) -> bool {
    let keys = RepositoryKeys::derive(&KeyRing::from_master([7; 32]));
    let path = PathKey::from_absolute(format!("/data/files/{name}").as_bytes()).unwrap();
    Fingerprints::new(*keys.leaf_key(), *keys.boundary_key(), 3).starts_leaf(&path)
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("file{number:04}")).collect()
}

/// The last name of a leaf that lies between others.
fn last_of_a_leaf(names: &[String]) -> &str {
    let mut ends = names.windows(2).filter(|pair| starts_leaf(&pair[1]) && !starts_leaf(&pair[0]));
    &ends.nth(3).unwrap()[0]
}

#[test]
fn random_trees_and_their_mutations_are_the_same_with_leaves_taken_over() {
    let mut adopted = 0;
    for seed in 0..8 {
        let pair = Pair::new();
        let sizes = RandomTreeSizes { entries: 300, ..RandomTreeSizes::default() };
        random_tree(&pair.knowing.source(), seed, &sizes).unwrap();
        for round in 0..4 {
            adopted += pair.backup();
            mutate_tree(&pair.knowing.source(), seed * 10 + round, 6).unwrap();
        }
    }
    assert!(adopted > 200, "{adopted} leaves");
}

#[test]
fn an_unchanged_source_is_taken_over_whole() {
    let pair = Pair::with_files(&names(300));
    let leaves = (fs::metadata(pair.cache()).unwrap().len() as usize - HEADER - CHECK) / RECORD;
    let all = pair.backup();
    // All but the first, which holds what is made up and so has no inode to go by.
    assert!(leaves > 20 && all == leaves as u64 - 1, "{all} of {leaves}");
    assert_eq!(pair.backup(), all, "also from a snapshot that was taken over");
}

/// Edits that one leaf must be looked into for, at the end of that leaf.
#[test]
fn a_leaf_that_an_edit_touches_is_looked_into() {
    let names = names(300);
    let last = last_of_a_leaf(&names);
    type Edit = fn(&Path);
    let edits: [(&str, u64, Edit); 7] = [
        ("a mode", 1, |path| fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap()),
        ("nothing but the change time", 1, |path| {
            let mode = fs::metadata(path).unwrap().mode();
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }),
        ("a content", 1, |path| write(path, b"other")),
        ("a file right behind", 2, |path| {
            let behind = |number: u32| format!("{}-{number}", path.to_str().unwrap());
            let is_plain = |path: &String| !starts_leaf(path.rsplit_once('/').unwrap().1);
            write(Path::new(&(0..).map(behind).find(is_plain).unwrap()), b"new");
        }),
        ("a removed file", 2, |path| fs::remove_file(path).unwrap()),
        ("a hard link", 1, |path| {
            let outside = path.parent().unwrap().parent().unwrap();
            fs::hard_link(path, outside.join("link")).unwrap();
        }),
        ("another inode", 2, |path| {
            let aside = path.with_extension("aside");
            fs::copy(path, &aside).unwrap();
            fs::rename(aside, path).unwrap();
        }),
    ];
    for (what, leaves, edit) in edits {
        let pair = Pair::with_files(&names);
        let all = pair.backup();
        edit(&pair.file(last));
        // Where the source's own times changed, the leaf that it lies in is looked into too.
        let fewer = all - pair.backup();
        assert!(fewer >= 1 && fewer <= leaves, "{what}: {fewer}");
        assert_eq!(pair.backup() == all, what != "a hard link", "{what}: afterwards");
    }
}

#[test]
fn what_is_not_settled_is_read_again() {
    let mut pair = Pair::new();
    pair.options.settling_seconds = 1000;
    names(100).iter().for_each(|name| write(&pair.file(name), name.as_bytes()));
    assert_eq!((pair.backup(), pair.backup()), (0, 0));
}

#[test]
fn a_leaf_that_ended_because_it_was_full_is_looked_into() {
    let plain = (0..).map(|number| format!("full{number:05}")).filter(|name| !starts_leaf(name));
    let plain: Vec<_> = plain.take(300).collect();
    let pair = Pair::new();
    plain.iter().for_each(|name| write(&pair.file(name), name.repeat(56).as_bytes()));
    pair.backup();
    let leaves = (fs::metadata(pair.cache()).unwrap().len() as usize - HEADER - CHECK) / RECORD;
    assert!((3..9).contains(&leaves), "{leaves} leaves of more than 64 KiB");
    pair.backup();
    fs::remove_file(pair.file(&plain[50])).unwrap();
    pair.backup();
}

#[test]
fn a_run_that_reads_all_takes_nothing_over_and_a_dry_one_only_counts() {
    let pair = Pair::with_files(&names(200));
    let all = pair.backup();
    let before = fs::read(pair.cache()).unwrap();
    let dry = BackupOptions { dry_run: true, ..pair.options.clone() };
    let dry = pair.knowing.backup_with(&dry);
    assert_eq!((dry.leaves_adopted, dry.files_unmodified, dry.items), (all, 200, 202));
    assert_eq!(fs::read(pair.cache()).unwrap(), before);
    let reading = BackupOptions { read_all: true, ..pair.options.clone() };
    let read = pair.knowing.backup_with(&reading);
    assert_eq!((read.leaves_adopted, read.files_unmodified), (0, 200));
}

#[test]
fn a_cache_of_another_snapshot_is_not_used() {
    let pair = Pair::with_files(&names(200));
    let before = fs::read(pair.cache()).unwrap();
    write(&pair.file("file0100"), b"another content");
    assert!(pair.backup() > 0);
    let after = fs::read(pair.cache()).unwrap();
    fs::write(pair.cache(), &before).unwrap();
    assert_eq!(pair.backup(), 0);
    // Under the right root, it is of use up to the leaf that the snapshot does not have.
    fs::write(pair.cache(), [&after[..HEADER], &before[HEADER..]].concat()).unwrap();
    pair.backup();
}

#[test]
fn nobody_without_the_keys_can_pass_a_leaf_off_as_one_of_other_files() {
    let pair = Pair::with_files(&names(200));
    assert!(pair.backup() > 0);
    let before = fs::read(pair.cache()).unwrap();
    // What the leaf would be known by if the edit had been backed up here.
    let first_root = newest(&pair.knowing.access(), Some(b"/data/files")).root;
    let other = World::new();
    write(&pair.file("file0100"), b"another content");
    let (_, edited) = backup(&other, &pair.options);
    let after = fs::read(leaf_cache(&other).unwrap()).unwrap();
    assert_eq!(before.len(), after.len());
    let mut forged = before.clone();
    for at in (HEADER..forged.len() - CHECK).step_by(RECORD) {
        let behind_id = at + 16..at + RECORD;
        forged[behind_id.clone()].copy_from_slice(&after[behind_id]);
    }
    fs::write(pair.cache(), &forged).unwrap();
    let (summary, made) = backup(&pair.knowing, &pair.options);
    assert_ne!(made.root, first_root);
    assert_eq!(made.root, edited.root);
    assert_eq!(summary.leaves_adopted, 0);
}

#[test]
fn a_damaged_cache_is_a_slower_run_and_nothing_more() {
    let pair = Pair::with_files(&names(200));
    let all = pair.backup();
    for at in [
        0,
        9,
        HEADER + 3 * RECORD,
        HEADER + 3 * RECORD + 20,
        HEADER + 7 * RECORD,
        HEADER + 7 * RECORD + 17,
    ] {
        let mut bytes = fs::read(pair.cache()).unwrap();
        bytes[at] ^= 0x10;
        fs::write(pair.cache(), bytes).unwrap();
        assert!(pair.backup() < all, "a bit of byte {at}");
        assert_eq!(pair.backup(), all, "it was written anew");
    }
    for cut in [0, 5, HEADER, HEADER + 5 * RECORD + 1] {
        let bytes = fs::read(pair.cache()).unwrap();
        fs::write(pair.cache(), &bytes[..cut]).unwrap();
        assert!(pair.backup() < all, "cut at {cut}");
        assert_eq!(pair.backup(), all);
    }
    fs::remove_file(pair.cache()).unwrap();
    fs::create_dir(pair.cache_folder().join("leaves.new")).unwrap();
    assert_eq!((pair.backup(), pair.backup()), (0, 0), "it cannot be written");
}

#[test]
fn two_series_keep_their_leaves_apart() {
    let pair = Pair::with_files(&names(200));
    let all = pair.backup();
    let other = BackupOptions { host: "other".to_owned(), ..pair.options.clone() };
    // It begins with the first one's snapshot, whose leaves are kept for the first alone.
    assert_eq!(pair.knowing.backup_with(&other).leaves_adopted, 0);
    assert_eq!(pair.knowing.backup_with(&other).leaves_adopted, all);
    assert_eq!(pair.backup(), all);
}
