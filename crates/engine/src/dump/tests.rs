//! What is dumped of made-up trees, byte by byte.

use holdall_tree::{ChunkRef, Content, Extents};

use super::*;
use crate::test_world::{World, directory, owned, small_file, symlink};

fn dump(world: &World, snapshot: &Snapshot, path: &str) -> Result<(Vec<u8>, DumpSummary), String> {
    let mut out = Vec::new();
    let dump = Dump::find(&world.access, snapshot, path.as_bytes());
    let summary = dump.and_then(|dump| dump.write(&mut out, &Run::new()));
    Ok((out, summary.map_err(|error| error.to_string())?))
}

fn sparse(world: &World, chunks: &[ChunkRef], runs: Vec<(u64, u64)>, size: u64) -> Entry {
    let extents = Extents::new(runs, size).unwrap().encode();
    let data = if chunks.is_empty() { small_file(b"") } else { world.file(chunks) };
    Entry { size, extents: Some(Content::Inline(extents)), ..data }
}

/// The members of an archive: name, type, and the bytes that follow.
fn members(archive: &[u8]) -> Vec<(String, u8, Vec<u8>)> {
    let mut found = Vec::new();
    let mut rest = archive;
    while rest.first().is_some_and(|first| *first != 0) {
        let (header, after) = rest.split_at(tar::BLOCK_BYTES);
        let name = header[..100].split(|byte| *byte == 0).next().unwrap();
        let size = std::str::from_utf8(&header[124..135]).unwrap();
        let size = usize::from_str_radix(size, 8).unwrap();
        found.push((String::from_utf8_lossy(name).into_owned(), header[156], after[..size].into()));
        rest = &after[size.next_multiple_of(tar::BLOCK_BYTES)..];
    }
    assert_eq!(rest, tar::END);
    found
}

#[test]
fn a_file_is_exactly_its_bytes_and_its_holes_are_zeros() {
    let world = World::new();
    let chunks = world.chunks(&[&[b'a'; 3000], &[b'b'; 2000]]);
    let snapshot = world.snapshot(&[
        ("/dense", world.file(&chunks)),
        ("/empty", small_file(b"")),
        ("/hole", sparse(&world, &[], Vec::new(), 100_000)),
        ("/inline", small_file(b"inline")),
        ("/sparse", sparse(&world, &chunks, vec![(10, 2500), (70_000, 2500)], 80_000)),
    ]);
    let bytes = |path| dump(&world, &snapshot, path).unwrap().0;
    let data = [[b'a'; 3000].as_slice(), &[b'b'; 2000]].concat();
    assert_eq!(bytes("/dense"), data);
    assert_eq!(bytes("/empty"), b"");
    assert_eq!(bytes("/inline"), b"inline");
    assert_eq!(bytes("/hole"), vec![0; 100_000]);
    let mut expected = vec![0; 80_000];
    expected[10..2510].copy_from_slice(&data[..2500]);
    expected[70_000..72_500].copy_from_slice(&data[2500..]);
    assert!(bytes("/sparse") == expected);
    let summary = dump(&world, &snapshot, "/sparse").unwrap().1;
    assert_eq!(summary, DumpSummary { items: 1, bytes: 5000, sockets: 0 });
}

#[test]
fn a_directory_is_an_archive_of_what_is_below_it() {
    let world = World::new();
    let chunks = world.chunks(&[b"content"]);
    let linked = Entry { hardlink: Some([1; 16]), ..world.file(&chunks) };
    let snapshot = world.snapshot(&[
        ("/", directory()),
        ("/a", directory()),
        ("/a/b", directory()),
        ("/a/b/one", linked.clone()),
        ("/a/file", small_file(b"inline")),
        ("/a/link", symlink("file")),
        ("/a/socket", owned(EntryKind::Socket, 0o600)),
        ("/a/sparse", sparse(&world, &chunks, vec![(10, 7)], 100)),
        ("/a/two", linked),
        ("/b", directory()),
    ]);
    let (archive, summary) = dump(&world, &snapshot, "/a").unwrap();
    assert_eq!(summary, DumpSummary { items: 7, bytes: 20, sockets: 1 });
    // Each has an extended header: its time has nanoseconds.
    let members: Vec<_> =
        members(&archive).into_iter().filter(|(_, kind, _)| *kind != b'x').collect();
    let names: Vec<_> = members.iter().map(|(name, kind, _)| (&name[..], *kind)).collect();
    let expected = [
        ("./", b'5'),
        ("./b/", b'5'),
        ("./b/one", b'0'),
        ("./file", b'0'),
        ("./link", b'2'),
        ("./GNUSparseFile.0/sparse", b'0'),
        ("./two", b'1'),
    ];
    assert_eq!(names, expected);
    assert_eq!((&members[2].2[..], &members[3].2[..]), (&b"content"[..], &b"inline"[..]));
    assert_eq!(&members[5].2[tar::BLOCK_BYTES..], b"content");
}

#[test]
fn content_is_fetched_in_batches_and_not_file_by_file() {
    let world = World::new();
    let contents: Vec<Vec<u8>> = (0..2000_u32).map(|at| at.to_le_bytes().repeat(50)).collect();
    let chunks = world.chunks(&contents.iter().map(|bytes| &bytes[..]).collect::<Vec<_>>());
    let names: Vec<String> = (0..2000).map(|at| format!("/file-{at:04}")).collect();
    let mut entries = vec![("/", directory())];
    let files = names.iter().zip(&chunks);
    entries.extend(files.map(|(name, chunk)| (&name[..], world.file(std::slice::from_ref(chunk)))));
    let snapshot = world.snapshot(&entries);
    // The tree's nodes are cached from here on.
    let _ = dump(&world, &snapshot, "/").unwrap();
    let before = world.repository.fetches();
    let (archive, _) = dump(&world, &snapshot, "/").unwrap();
    assert_eq!(world.repository.fetches() - before, 1);
    let whole: Vec<_> = members(&archive).into_iter().filter(|one| one.1 == b'0').collect();
    assert!(whole.len() == 2000 && whole.iter().zip(&contents).all(|(one, bytes)| one.2 == *bytes));
}

#[test]
fn a_dump_ends_before_what_is_damaged_and_names_it() {
    let world = World::new();
    let good = world.chunks(&[b"good"]);
    let bad = world.chunks(&[b"bad"]);
    world.repository.damage(&bad[0].id);
    let short = Entry { size: 9, ..small_file(b"short") };
    let snapshot = world.snapshot(&[
        ("/a", directory()),
        ("/a/bad", world.file(&bad)),
        ("/b", directory()),
        ("/b/short", short),
        ("/c", world.file(&good)),
    ]);
    assert_eq!(dump(&world, &snapshot, "/c").unwrap().0, b"good");
    for path in ["/a", "/a/bad"] {
        let told = dump(&world, &snapshot, path).unwrap_err();
        assert!(told.contains("content of /a/bad is damaged"), "{told}");
    }
    for path in ["/b", "/b/short"] {
        let told = dump(&world, &snapshot, path).unwrap_err();
        assert!(told.contains("/b/short is damaged"), "{told}");
    }
    let mut out = Vec::new();
    let dump = Dump::find(&world.access, &snapshot, b"/a").unwrap();
    dump.write(&mut out, &Run::new()).unwrap_err();
    assert!(!out.ends_with(&tar::END), "an archive that is not whole has no end");
}

#[test]
fn everything_before_what_is_damaged_is_written() {
    let world = World::new();
    let chunk = world.chunks(&[&[7; 1 << 20]])[0];
    let snapshot = world.snapshot(&[
        ("/", directory()),
        // More than one window.
        ("/a", world.file(&[chunk; 10])),
        ("/b", small_file(b"before")),
        ("/c", Entry { size: 9, ..small_file(b"short") }),
        ("/d", small_file(b"behind")),
    ]);
    let mut out = Vec::new();
    let dump = Dump::find(&world.access, &snapshot, b"/").unwrap();
    let told = dump.write(&mut out, &Run::new()).unwrap_err().to_string();
    assert!(told.contains("/c is damaged"), "{told}");
    out.extend_from_slice(&tar::END);
    let whole: Vec<_> = members(&out).into_iter().filter(|one| one.1 == b'0').collect();
    let sizes: Vec<_> = whole.iter().map(|one| (&one.0[..], one.2.len())).collect();
    assert_eq!(sizes, [("./a", 10 << 20), ("./b", 6)]);
}

#[test]
fn a_reader_that_has_had_enough_ends_the_dump_and_so_does_a_wish_to_stop() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let world = World::new();
    let chunk = world.chunks(&[&[7; 1 << 20]])[0];
    // Many windows: the planner waits for room when the writer ends.
    let large = world.file(&[chunk; 48]);
    let snapshot = world.snapshot(&[("/a", directory()), ("/a/large", large)]);
    let dump = Dump::find(&world.access, &snapshot, b"/a").unwrap();
    let ended = dump.write(&mut Closed, &Run::new());
    assert!(matches!(ended, Err(EngineError::Io { .. })), "{ended:?}");
    let run = Run::new();
    run.stop();
    let ended = dump.write(&mut std::io::sink(), &run);
    assert!(matches!(ended, Err(EngineError::Interrupted)), "{ended:?}");
}

#[test]
fn only_files_and_directories_are_dumped() {
    let world = World::new();
    let snapshot = world.snapshot(&[("/a", directory()), ("/a/link", symlink("x"))]);
    let find = |path: &str| Dump::find(&world.access, &snapshot, path.as_bytes());
    assert!(find("/").unwrap().is_archive() && find("/a").unwrap().is_archive());
    assert!(matches!(find("/a/link").err(), Some(EngineError::Path { .. })));
    assert!(matches!(find("/nothing").err(), Some(EngineError::NoPath { .. })));
}
