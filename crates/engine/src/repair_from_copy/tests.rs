//! What is lost comes back from a second repository with its very id, and nothing else does.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use holdall_crypto::{CopiedFrom, PlainObject, RecordSecret};
use holdall_format::{Block, BlockKind, ObjectId};
use holdall_protocol::RepositoryError;
use holdall_testkit::{CompareOptions, Random, compare_trees};
use holdall_tree::{Content, PathKey, lookup};

use super::*;
use crate::restore::ChunkSource;
use crate::test_world::World;
use crate::verify::{Verify, stored_nodes, verify};
use crate::{Copier, CopyOptions, RestoreOptions, restore};

/// A repository, a second one, and the folder that is in both.
struct Pair {
    first: World,
    second: World,
    folder: tempfile::TempDir,
}

impl Pair {
    fn new() -> Self {
        let (first, second) = (World::with_secret([1; 32]), World::with_secret([2; 32]));
        Self { first, second, folder: tempfile::tempdir().expect("a folder") }
    }

    /// Files of up to one chunk, which all repositories cut alike.
    fn with_small_files() -> Self {
        let pair = Self::new();
        let mut random = Random::new(1);
        for folder in 0..30 {
            for file in 0..10 {
                pair.write(&format!("d{folder}/{file}"), &random.bytes(100 + 400 * file));
            }
        }
        pair
    }

    /// Content of every kind: in entries, of one chunk and of several, and a list of chunks.
    fn filled() -> Self {
        let (pair, mut random) = (Self::with_small_files(), Random::new(3));
        pair.write("many", &random.bytes(5 << 20));
        pair.write("list", &random.bytes(40 << 20));
        pair
    }

    /// Backed up and copied, and then nothing of the first can be read any more.
    fn with_all_lost() -> (Self, Snapshot) {
        let pair = Self::filled();
        let snapshot = pair.back_up();
        pair.copy_all();
        pair.first.repository.damage_all(|_| true);
        fs::remove_dir_all(&pair.first.access.cache).expect("a cache");
        (pair, snapshot)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().expect("the folder")).expect("a folder");
        fs::write(&path, bytes).expect("a file");
        path
    }

    fn back_up(&self) -> Snapshot {
        self.first.back_up(self.folder.path())
    }

    fn copy_all(&self) {
        let listed = self.first.snapshots();
        let (from, to) = (&self.first.access, &self.second.access);
        let mut copier = Copier::new(from, &listed, to, CopyOptions::default()).expect("a copier");
        for snapshot in &listed {
            copier.copy(snapshot, &Arc::new(Run::new())).expect("it can be copied");
        }
    }

    #[track_caller]
    fn repair_from_copy(&self, dry_run: bool) -> CopyRepairReport {
        let (first, second) = (&self.first.access, &self.second.access);
        repair_from_copy(first, second, dry_run, &Run::new(), &mut |_| {}).expect("it runs")
    }

    /// What snapshots lack according to a verification.
    fn lacks(&self) -> u64 {
        let (access, all) = (&self.first.access, self.first.snapshots());
        let report = verify(access, &all, Verify::All, &Run::new(), &mut |_| {});
        report.expect("it runs").damaged_path_count
    }

    #[track_caller]
    fn check_restored(&self, snapshot: &Snapshot) {
        let out = tempfile::tempdir().expect("a folder");
        let target = out.path().join("target");
        let path = self.folder.path().to_str().expect("UTF-8").as_bytes();
        let options = RestoreOptions::default();
        restore(&self.first.access, snapshot, Some(path), &target, &options, &Run::new())
            .expect("it can be restored");
        assert_eq!(compare_trees(self.folder.path(), &target, &CompareOptions::default()), []);
    }
}

#[test]
fn whatever_is_lost_comes_back_and_every_snapshot_is_whole() {
    let pair = Pair::filled();
    let first = pair.back_up();
    pair.write("d3/new", &Random::new(2).bytes(9_000));
    let second = pair.back_up();
    pair.copy_all();
    // A file's content, a list of chunks, and whatever lies in one block with them: other small
    // files, and leaves of directories. How many those are depends on how the threads took turns.
    let content = fs::read(pair.folder.path().join("d7/9")).expect("a file");
    let chunk = pair.first.access.keys.ids().chunk_id(&content);
    let lost = [chunk, list_of(&pair, &second, "list")];
    pair.first.repository.damage_all(|id| lost.contains(id));
    fs::remove_dir_all(&pair.first.access.cache).expect("a cache");
    let before = (pair.lacks(), pair.first.repository.blocks());
    assert!(before.0 >= 2, "{} paths are damaged", before.0);

    let would = pair.repair_from_copy(true);
    assert!(would.left.is_empty(), "{would:?}");
    assert!((pair.lacks(), pair.first.repository.blocks()) == before, "a dry run changed it");
    let done = pair.repair_from_copy(false);
    assert_eq!(done.repaired, would.repaired);
    assert!(done.left.is_empty() && done.repaired[0].objects >= 2, "{done:?}");
    assert_eq!(pair.lacks(), 0);
    pair.check_restored(&second);
    assert!(pair.repair_from_copy(false).repaired.is_empty(), "there is nothing left to repair");
    assert_ne!(first.id, second.id);
}

#[test]
fn a_lost_root_and_all_below_it_is_built_anew() {
    let (pair, snapshot) = Pair::with_all_lost();
    let done = pair.repair_from_copy(false);
    assert!(done.left.is_empty(), "{:?}", done.left);
    assert_eq!(pair.lacks(), 0);
    pair.check_restored(&snapshot);
}

#[test]
fn a_copy_with_the_same_keys_gives_what_it_has_by_id() {
    let pair = Pair { second: World::with_secret([1; 32]), ..Pair::filled() };
    let snapshot = pair.back_up();
    pair.first.repository.blocks().into_iter().for_each(|block| pair.second.repository.put(block));
    pair.first.repository.damage_all(|_| true);
    fs::remove_dir_all(&pair.first.access.cache).expect("a cache");
    let would = pair.repair_from_copy(true);
    let done = pair.repair_from_copy(false);
    assert_eq!((&done.repaired, done.left.len(), would.left.len()), (&would.repaired, 0, 0));
    assert_eq!(pair.lacks(), 0);
    pair.check_restored(&snapshot);
}

/// Makes the second repository say that what the folder has now is a copy of a snapshot.
fn lie(pair: &Pair, of: &Snapshot) {
    let liar = World::with_secret([6; 32]);
    let lie = liar.back_up(pair.folder.path());
    let from = CopiedFrom { record: of.id, received_ns: of.received_ns, through: None };
    let secret = RecordSecret { copied_from: Some(from), ..lie.secret.clone() };
    let lie = Snapshot { secret, ..lie };
    let listed = liar.snapshots();
    let (from, to) = (&liar.access, &pair.second.access);
    let mut copier = Copier::new(from, &listed, to, CopyOptions::default()).expect("a copier");
    copier.copy(&lie, &Arc::new(Run::new())).expect("it can be copied");
}

#[test]
fn what_the_second_repository_lacks_or_has_otherwise_stays_lost_and_is_told() {
    let pair = Pair::with_small_files();
    let [other, gone] = [8, 9].map(|seed| Random::new(seed).bytes(9_000));
    let files = [pair.write("other", &other), pair.write("gone", &gone)];
    let lost = [other, gone].map(|bytes| pair.first.access.keys.ids().chunk_id(&bytes));
    let snapshot = pair.back_up();
    fs::write(&files[0], Random::new(7).bytes(9_000)).expect("a file");
    fs::remove_file(&files[1]).expect("a file");
    lie(&pair, &snapshot);
    pair.first.repository.damage_all(|id| lost.contains(id));
    let ids = sorted(pair.first.repository.ids());

    let done = pair.repair_from_copy(false);
    let told = |path: &PathBuf, reason: &str| {
        let path = path.to_str().expect("UTF-8").as_bytes();
        done.left.iter().any(|left| left.path == path && left.reason.contains(reason))
    };
    assert!(told(&files[0], "other content"), "{:?}", done.left);
    assert!(told(&files[1], "does not have it"), "{:?}", done.left);
    // What lay beside them is back, and nothing is there that was not.
    assert_eq!((done.left.len(), pair.lacks()), (2, 2));
    assert_eq!(sorted(pair.first.repository.ids()), ids);

    // Where a node does not come out, nothing tells what belongs below it.
    pair.first.repository.damage_all(|_| true);
    fs::remove_dir_all(&pair.first.access.cache).expect("a cache");
    let blocks = pair.first.repository.blocks();
    let done = pair.repair_from_copy(false);
    assert_eq!(done.repaired, []);
    assert!(!done.left.is_empty());
    assert!(pair.first.repository.blocks() == blocks, "something was put");
}

fn sorted(mut ids: Vec<ObjectId>) -> Vec<ObjectId> {
    ids.sort_unstable();
    ids
}

#[test]
fn without_a_copy_of_the_snapshot_nothing_is_changed() {
    let pair = Pair::filled();
    let snapshot = pair.back_up();
    pair.second.back_up(pair.folder.path());
    pair.first.repository.damage(&snapshot.root);
    let blocks = pair.first.repository.blocks();
    let done = pair.repair_from_copy(false);
    assert_eq!((done.repaired.len(), done.left.len()), (0, 1));
    assert!(done.left[0].reason.contains("no copy of this snapshot"), "{:?}", done.left);
    assert!(pair.first.repository.blocks() == blocks, "something was put");
}

#[test]
fn what_is_damaged_in_both_is_told_and_the_rest_comes_back() {
    let pair = Pair::filled();
    pair.back_up();
    pair.copy_all();
    let content = fs::read(pair.folder.path().join("d7/9")).expect("a file");
    let id = |world: &World| world.access.keys.ids().chunk_id(&content);
    pair.first.repository.damage_all(|_| true);
    pair.second.repository.damage(&id(&pair.second));
    fs::remove_dir_all(&pair.first.access.cache).expect("a cache");
    let done = pair.repair_from_copy(false);
    assert!(!done.left.is_empty());
    assert!(done.left.iter().all(|left| left.reason.contains("second repository")), "{done:?}");
}

#[test]
fn a_copy_of_the_directory_that_has_something_else_under_an_id_is_told() {
    let pair = Pair { second: World::with_secret([1; 32]), ..Pair::new() };
    let content = Random::new(4).bytes(9_000);
    pair.write("file", &content);
    pair.back_up();
    let id = pair.first.access.keys.ids().chunk_id(&content);
    pair.second.false_chunk(id, &Random::new(5).bytes(9_000));
    pair.first.repository.damage(&id);
    let blocks = pair.first.repository.blocks();
    let done = pair.repair_from_copy(false);
    assert_eq!((done.repaired.len(), done.left.len()), (0, 1));
    assert!(done.left[0].reason.contains("no good copy"), "{:?}", done.left);
    assert!(pair.first.repository.blocks() == blocks, "something was put");
    // A good copy behind the false one serves.
    pair.second.chunks(&[&content]);
    assert_eq!(pair.repair_from_copy(false).left.len(), 0);
    assert_eq!(pair.lacks(), 0);
}

#[test]
fn what_is_lost_below_a_good_leaf_below_a_lost_node_comes_back_too() {
    let pair = Pair::with_small_files();
    let snapshot = pair.back_up();
    pair.copy_all();
    // Interior nodes lie apart from leaves.
    let content = fs::read(pair.folder.path().join("d7/9")).expect("a file");
    let chunk = pair.first.access.keys.ids().chunk_id(&content);
    pair.first.repository.damage_all(|id| [snapshot.root, chunk].contains(id));
    fs::remove_dir_all(&pair.first.access.cache).expect("a cache");
    let would = pair.repair_from_copy(true);
    let done = pair.repair_from_copy(false);
    assert_eq!((&done.repaired, done.left.len(), would.left.len()), (&would.repaired, 0, 0));
    assert_eq!(pair.lacks(), 0);
    pair.check_restored(&snapshot);
}

/// The list of the chunks of a file.
fn list_of(pair: &Pair, snapshot: &Snapshot, name: &str) -> ObjectId {
    let path = pair.folder.path().join(name);
    let path = PathKey::from_absolute(path.to_str().expect("UTF-8").as_bytes()).expect("a path");
    let nodes = stored_nodes(&pair.first.access, SessionId::from_bytes([9; 16]));
    let entry = lookup(nodes, snapshot.root, &path).expect("it can be read").expect("it is there");
    match entry.content {
        Content::List { id, .. } => id,
        content => panic!("no list: {content:?}"),
    }
}

#[test]
fn a_lost_list_of_chunks_whose_leaf_is_there_comes_back() {
    let pair = Pair::filled();
    let snapshot = pair.back_up();
    pair.copy_all();
    let list = list_of(&pair, &snapshot, "list");
    let mut opener = ChunkSource::opener(&pair.first.access);
    // All that lies beside it is stored once more, each by itself.
    for block in pair.first.repository.blocks() {
        let block = Block::decode(block).expect("whole");
        if !block.table().entries.iter().any(|entry| entry.id == list) {
            continue;
        }
        let opened = opener.open(&block, BlockKind::Nodes).expect("it opens");
        for object in opened.objects.iter().filter(|object| object.id != list) {
            let (body, refs) = (opened.body(object), object.refs.clone());
            let object = PlainObject { id: object.id, refs, len: body.len() };
            pair.first.seal(BlockKind::Nodes, &[object], body);
        }
    }
    pair.first.repository.damage(&list);
    fs::remove_dir_all(&pair.first.access.cache).expect("a cache");
    assert_eq!(pair.lacks(), 1);
    let done = pair.repair_from_copy(false);
    assert_eq!((done.repaired.len(), done.left.len()), (1, 0));
    assert_eq!((done.repaired[0].objects, pair.lacks()), (1, 0));
}

#[test]
fn a_repair_that_is_cut_short_goes_on_where_it_was() {
    let (pair, snapshot) = Pair::with_all_lost();
    let mut cuts = 0;
    loop {
        let before = pair.first.repository.blocks().len();
        pair.first.repository.limit_room(Some(8));
        let (first, second) = (&pair.first.access, &pair.second.access);
        match repair_from_copy(first, second, false, &Run::new(), &mut |_| {}) {
            Ok(report) => {
                assert!(report.left.is_empty(), "{:?}", report.left);
                break;
            }
            Err(EngineError::Repository(RepositoryError::NoRoom { .. })) => {
                assert_eq!(pair.first.repository.blocks().len(), before + 8);
                cuts += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(cuts > 2, "it was cut {cuts} times");
    assert_eq!(pair.lacks(), 0);
    pair.check_restored(&snapshot);
}
