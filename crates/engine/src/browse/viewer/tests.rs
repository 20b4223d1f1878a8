//! Pieces of made-up files, and what was fetched for them.

use holdall_tree::{ChunkRef, Extents};

use super::*;
use crate::test_world::{World, directory, small_file};

fn viewer(world: World) -> (Viewer, impl Fn() -> usize) {
    let World { access, repository, .. } = world;
    (Viewer::open(Arc::new(access)).unwrap(), move || repository.fetches())
}

/// Chunks that lie in a block each.
fn chunks(world: &World, count: u8) -> (Vec<ChunkRef>, Vec<u8>) {
    let contents: Vec<_> = (0..count).map(|byte| vec![byte; 1000 + usize::from(byte)]).collect();
    let chunks = contents.iter().flat_map(|content| world.chunks(&[content])).collect();
    (chunks, contents.concat())
}

fn whole(viewer: &Viewer, file: &FileView, from: u64, most: u64) -> Vec<u8> {
    let (mut bytes, mut at) = (Vec::new(), from);
    loop {
        let piece = viewer.read(file, at, most).unwrap();
        assert!(piece.len() as u64 <= most);
        if piece.is_empty() {
            return bytes;
        }
        at += piece.len() as u64;
        bytes.extend_from_slice(&piece);
    }
}

#[test]
fn pieces_of_any_length_from_any_place_are_what_is_there() {
    let world = World::new();
    let (chunks, data) = chunks(&world, 5);
    let runs = vec![(10, 2500), (70_000, data.len() as u64 - 2500)];
    let extents = Extents::new(runs, 80_000).unwrap().encode();
    let dense = world.file(&chunks);
    let sparse = Entry { size: 80_000, extents: Some(Content::Inline(extents)), ..dense.clone() };
    let mut spread = vec![0; 80_000];
    spread[10..2510].copy_from_slice(&data[..2500]);
    spread[70_000..70_000 + data.len() - 2500].copy_from_slice(&data[2500..]);
    let (viewer, _) = viewer(world);
    let inline = small_file(b"inline");
    for (entry, expected) in
        [(dense, &data[..]), (sparse, &spread), (inline, b"inline"), (small_file(b""), b"")]
    {
        let file = viewer.file(b"/file", entry).unwrap();
        for from in [0, 1, 9, 10, 999, 1000, 2509, 2510, 5009, 69_999, 79_999, 80_000, 90_000] {
            for most in [1, 7, 1500, 1 << 20] {
                if most > 1 || expected.len() < 100 {
                    let wanted = expected.get(from..).unwrap_or_default();
                    assert!(whole(&viewer, &file, from as u64, most) == wanted, "{from} {most}");
                }
            }
        }
    }
}

#[test]
fn a_piece_fetches_only_the_blocks_that_it_lies_in() {
    let world = World::new();
    let (chunks, data) = chunks(&world, 40);
    let file = world.file(&chunks);
    let (viewer, fetches) = viewer(world);
    let file = viewer.file(b"/file", file).unwrap();
    let before = fetches();
    assert_eq!(viewer.read(&file, 20_000, 100).unwrap(), data[20_000..20_100]);
    assert_eq!(fetches() - before, 1);
    viewer.read(&file, 20_050, 100).unwrap();
    assert_eq!(fetches() - before, 1, "what was opened is still here");
}

#[test]
fn entries_and_folders_are_found_and_what_is_not_there_is_none() {
    let world = World::new();
    let snapshot = world.snapshot(&[
        ("/", directory()),
        ("/a", directory()),
        ("/a/b", small_file(b"b")),
        ("/c", small_file(b"")),
    ]);
    let (viewer, _) = viewer(world);
    let kind = |path: &str| {
        let found = viewer.entry(&snapshot, path.as_bytes()).unwrap();
        found.map(|entry| entry.kind)
    };
    assert_eq!(kind("/"), Some(EntryKind::Directory));
    assert_eq!((kind("/a"), kind("/a/b")), (Some(EntryKind::Directory), Some(EntryKind::File)));
    for missing in ["/b", "/a/b/c", "a", "", "/a/../c", "/./c", "//c"] {
        assert_eq!(kind(missing), None, "{missing}");
    }
    let mut listed = Vec::new();
    let visit = &mut |one: ListedEntry<'_>| {
        listed.push(String::from_utf8_lossy(one.path).into_owned());
        Ok(())
    };
    viewer.list(&snapshot, b"/", false, &Run::new(), visit).unwrap();
    assert_eq!(listed, ["/a", "/c"]);
}

#[test]
fn what_is_damaged_is_an_error_and_never_other_bytes() {
    let world = World::new();
    let (chunks, data) = chunks(&world, 3);
    world.repository.damage(&chunks[1].id);
    let file = world.file(&chunks);
    let (viewer, _) = viewer(world);
    let file = viewer.file(b"/file", file).unwrap();
    assert_eq!(viewer.read(&file, 0, 1000).unwrap(), data[..1000]);
    let error = viewer.read(&file, 1500, 100).unwrap_err().to_string();
    assert!(error.starts_with("/file is damaged"), "{error}");
}
