//! Files read in order and out of order, and what was fetched for them.

use holdall_testkit::Random;
use holdall_tree::{ChunkRef, Content, Entry, Extents};

use super::*;
use crate::Snapshot;
use crate::restore::WINDOW_BYTES;
use crate::test_world::{MemoryRepository, World, directory, small_file};

/// Files of a snapshot, with their numbers and what is in them.
struct Files {
    ahead: ReadAhead,
    repository: Arc<MemoryRepository>,
    snapshot: Snapshot,
    files: Vec<(u64, Vec<u8>)>,
}

impl Files {
    /// A folder of these files, in the order of the tree.
    fn new(world: World, files: Vec<(Entry, Vec<u8>)>) -> Self {
        let mut entries = vec![("/".to_owned(), directory()), ("/dir".to_owned(), directory())];
        let named = files.iter().enumerate();
        entries.extend(named.map(|(at, (entry, _))| (format!("/dir/{at:05}"), entry.clone())));
        let entries: Vec<_> =
            entries.iter().map(|(path, entry)| (&path[..], entry.clone())).collect();
        let snapshot = world.snapshot(&entries);
        let files = (3..).zip(files).map(|(number, (_, content))| (number, content)).collect();
        let World { access, repository, .. } = world;
        let ahead = ReadAhead::open(Arc::new(access)).unwrap();
        Self { ahead, repository, snapshot, files }
    }

    fn read(&self, number: u64, offset: u64, len: usize) -> Result<Vec<u8>, EngineError> {
        self.ahead.read(self.snapshot.root, number, offset, len)
    }

    /// Reads whole files by their places; says how often was fetched meanwhile.
    fn read_all(&self, which: impl IntoIterator<Item = usize>) -> usize {
        let before = self.repository.fetches();
        for at in which {
            let (number, content) = &self.files[at];
            assert!(self.read(*number, 0, content.len() + 1).unwrap() == *content, "{at}");
        }
        self.repository.fetches() - before
    }
}

/// Small files, so many of them in each block.
fn small_files(world: &World, blocks: u32, in_block: u32) -> Vec<(Entry, Vec<u8>)> {
    let mut files = Vec::new();
    for block in 0..blocks {
        let contents: Vec<_> =
            (0..in_block).map(|file| format!("{block} {file} ").repeat(100).into_bytes()).collect();
        let parts: Vec<_> = contents.iter().map(|content| &content[..]).collect();
        let chunks = world.chunks(&parts);
        let entries = chunks.iter().map(|chunk| world.file(std::slice::from_ref(chunk)));
        files.extend(entries.zip(contents));
    }
    files
}

/// A content in blocks of one chunk each.
fn large(world: &World, chunks: usize, chunk_bytes: usize) -> (Vec<ChunkRef>, Vec<u8>) {
    let content = Random::new(3).bytes(chunks * chunk_bytes);
    let stored = content.chunks(chunk_bytes).flat_map(|chunk| world.chunks(&[chunk]));
    (stored.collect(), content)
}

#[test]
fn files_read_one_after_the_other_cost_what_their_blocks_cost() {
    let world = World::new();
    let files = small_files(&world, 30, 40);
    let files = Files::new(world, files);
    let nodes = files.repository.ids().len() - files.files.len();
    let fetches = files.read_all(0..files.files.len());
    assert!(fetches <= nodes + 30 + 10, "{fetches} for {nodes} nodes and 30 blocks");
    // A second time it is the same, and the nodes are on this computer.
    assert!(files.read_all(0..files.files.len()) <= 30 + 10);
}

#[test]
fn what_comes_next_is_fetched_with_the_second_file_of_a_run() {
    let world = World::new();
    let files = small_files(&world, 30, 40);
    let files = Files::new(world, files);
    files.read_all(0..2);
    assert_eq!(files.read_all(2..files.files.len()), 0);
}

#[test]
fn every_other_file_of_many_is_read_ahead_too() {
    let world = World::new();
    let files = small_files(&world, 30, 40);
    let files = Files::new(world, files);
    let nodes = files.repository.ids().len() - files.files.len();
    let fetches = files.read_all((0..files.files.len()).step_by(7));
    assert!(fetches <= nodes + 30 + 10, "{fetches} for {nodes} nodes and 30 blocks");
}

#[test]
fn a_file_alone_has_nothing_fetched_ahead() {
    let world = World::new();
    let files = small_files(&world, 30, 40);
    let files = Files::new(world, files);
    // Far from each other: each costs its block, and its nodes.
    let levels = 6;
    assert!(files.read_all([1100, 700, 300]) <= 3 * (levels + 1));
}

#[test]
fn several_who_read_at_once_each_get_their_own() {
    let world = World::new();
    let files = small_files(&world, 40, 40);
    let files = Files::new(world, files);
    std::thread::scope(|scope| {
        for part in 0..5 {
            let files = &files;
            scope.spawn(move || files.read_all((0..files.files.len()).skip(part * 320).take(320)));
        }
    });
}

#[test]
fn many_more_who_read_than_there_are_runs_all_get_their_own_and_nobody_waits_for_ever() {
    let world = World::new();
    let files = small_files(&world, 40, 40);
    let files = Files::new(world, files);
    std::thread::scope(|scope| {
        for part in 0..16 {
            let files = &files;
            scope.spawn(move || {
                for _ in 0..5 {
                    files.read_all((0..files.files.len()).skip(part * 100).take(8));
                }
            });
        }
    });
}

#[test]
fn pieces_of_large_sparse_and_inline_files_are_what_is_there() {
    let world = World::new();
    let (chunks, data) = large(&world, 14, 500_000);
    assert!(data.len() as u64 > WINDOW_BYTES);
    let size = data.len() as u64 + 300_000;
    let runs = vec![(100_000, 1_000_000), (1_300_000, data.len() as u64 - 1_000_000)];
    let extents = Extents::new(runs, size).unwrap().encode();
    let dense = world.file(&chunks);
    let sparse = Entry { size, extents: Some(Content::Inline(extents)), ..dense.clone() };
    let mut spread = vec![0; size as usize];
    spread[100_000..1_100_000].copy_from_slice(&data[..1_000_000]);
    spread[1_300_000..].copy_from_slice(&data[1_000_000..]);
    let mut all = small_files(&world, 2, 20);
    all.extend([(dense, data), (small_file(b"inline"), b"inline".to_vec()), (sparse, spread)]);
    all.extend([(small_file(b""), Vec::new())]);
    all.extend(small_files(&world, 1, 5));
    let files = Files::new(world, all);
    // In the order of the tree, in pieces as the kernel asks.
    for (number, content) in &files.files {
        for at in (0..content.len()).step_by(128 << 10) {
            let end = content.len().min(at + (128 << 10));
            let piece = files.read(*number, at as u64, 128 << 10).unwrap();
            assert!(piece == content[at..end], "{number} at {at}");
        }
    }
    let sparse = files.files[42].0;
    let next = |offset, is_data| files.ahead.next(files.snapshot.root, sparse, offset, is_data);
    assert_eq!(next(1_100_000, true).unwrap(), Some(1_300_000));
    assert_eq!(next(1_300_000, false).unwrap(), Some(7_300_000));
    // And in any order.
    let mut random = Random::new(9);
    for _ in 0..300 {
        let (number, content) = &files.files[random.index(files.files.len())];
        let at = random.index(content.len() + 2);
        let len = 1 + random.index(300_000);
        let expected = content.get(at..content.len().min(at + len)).unwrap_or_default();
        assert!(files.read(*number, at as u64, len).unwrap() == expected, "{number} at {at}");
    }
}

#[test]
fn a_damaged_block_costs_its_own_files_and_no_others() {
    let world = World::new();
    let files = small_files(&world, 10, 40);
    let Content::Chunks(hit) = &files[200].0.content else { panic!("it has chunks") };
    world.repository.damage(&hit[0].id);
    let files = Files::new(world, files);
    for (at, (number, content)) in files.files.iter().enumerate() {
        match files.read(*number, 0, content.len()) {
            Ok(read) => assert!(read == *content && at / 40 != 5, "{at}"),
            Err(error) => {
                assert!(error.is_damage() && at / 40 == 5, "{at}: {error}");
                assert!(error.to_string().contains(&format!("/dir/{at:05}")), "{error}");
            }
        }
    }
}

#[test]
fn numbers_that_are_no_file_are_damage() {
    let world = World::new();
    let files = small_files(&world, 1, 3);
    let files = Files::new(world, files);
    for number in [0, 1, 2, 6, 7, u64::MAX] {
        assert!(files.read(number, 0, 1).unwrap_err().is_damage(), "{number}");
    }
}
