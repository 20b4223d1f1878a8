//! Walking: listings, odd names, paths without end.

use holdall_sys::{Dir, FileKind, MAX_PATH_BYTES, TargetDir};
use rustix::io::Errno;

use crate::{errno, name, open, place};

#[test]
fn a_listing_is_sorted_by_bytes_and_says_kinds() {
    let (folder, target) = place();
    let names: [&[u8]; 6] = [b"\xff\xfe", b"a\nb", b"-rf", b" lead", b"B", &[b'x'; 255]];
    for entry in names {
        target.create_file(name(entry), 0o600).expect("any name will do");
    }
    target.create_dir(name(b"dir"), 0o700).expect("room for one more");
    target.create_symlink(b"nowhere", name(b"link")).expect("room for one more");

    let listing = open(&folder).entries().expect("readable");
    let found: Vec<_> = listing.iter().map(|entry| entry.name().as_bytes()).collect();
    let expected: [&[u8]; 8] =
        [b" lead", b"-rf", b"B", b"a\nb", b"dir", b"link", &[b'x'; 255], b"\xff\xfe"];
    assert_eq!(found, expected);
    assert_eq!(listing.len(), 8);
    assert_eq!(listing.get(4).and_then(|entry| entry.kind()), Some(FileKind::Dir));
    assert_eq!(listing.get(5).and_then(|entry| entry.kind()), Some(FileKind::Symlink));
    assert_eq!(listing.get(8), None);
}

#[test]
fn an_empty_directory_has_no_entries_and_a_second_listing_sees_what_is_new() {
    let (folder, target) = place();
    let dir = open(&folder);
    assert!(dir.entries().expect("readable").is_empty());
    target.create_file(name(b"new"), 0o600).expect("room");
    assert_eq!(dir.entries().expect("readable").len(), 1);
    assert_eq!(dir.entries().expect("readable").len(), 1);
}

#[test]
fn a_large_directory_comes_in_sorted_pieces_that_make_up_the_whole() {
    let (folder, target) = place();
    for number in 0..3_000_u32 {
        target.create_file(name(format!("{number:05}").as_bytes()), 0o600).expect("room");
    }
    let dir = open(&folder);
    let mut pieces = 0;
    let mut names = Vec::new();
    dir.entries_in_pieces(4096, |piece| {
        pieces += 1;
        let here: Vec<_> = piece.iter().map(|entry| entry.name().as_bytes().to_vec()).collect();
        assert!(here.is_sorted());
        names.extend(here);
        Ok(())
    })
    .expect("readable");
    names.sort_unstable();
    let whole = dir.entries().expect("readable");
    assert!(pieces > 1);
    assert_eq!(names, whole.iter().map(|e| e.name().as_bytes().to_vec()).collect::<Vec<_>>());
    assert_eq!(names.len(), 3_000);
}

#[test]
fn the_first_error_of_the_taker_ends_a_listing() {
    let (folder, target) = place();
    target.create_file(name(b"a"), 0o600).expect("room");
    let stopped = open(&folder).entries_in_pieces(1, |_| Err(std::io::Error::other("enough")));
    assert_eq!(stopped.expect_err("the taker gave up").to_string(), "enough");
}

#[test]
fn a_directory_under_60_000_bytes_of_path_is_opened_by_its_path() {
    let (folder, target) = place();
    let component = [b'd'; 250];
    let mut path = folder.path().as_os_str().as_encoded_bytes().to_vec();
    let mut levels: Vec<TargetDir> = vec![target];
    while path.len() + component.len() < 60_000 {
        let here = levels.last().expect("the root is there");
        levels.push(here.create_dir(name(&component), 0o700).expect("any depth"));
        path.push(b'/');
        path.extend_from_slice(&component);
    }
    let deepest = levels.pop().expect("the root is there");
    let opened = Dir::open_absolute(&path).expect("longer than the kernel takes at once");
    let (opened, expected) = (opened.stat_self(), deepest.as_dir().stat_self());
    assert_eq!(opened.expect("open").inode, expected.expect("open").inode);

    // What the temporary folder's own cleaning need not be able to.
    while let Some(level) = levels.pop() {
        level.remove_dir(name(&component)).expect("empty by now");
    }
}

#[test]
fn slashes_at_the_seam_of_two_pieces_do_no_harm() {
    let (folder, target) = place();
    target.create_dir(name(b"end"), 0o700).expect("room");
    let mut path = folder.path().as_os_str().as_encoded_bytes().to_vec();
    path.resize(9_000, b'/');
    path.extend_from_slice(b"end");
    Dir::open_absolute(&path).expect("many slashes are one");
    path.resize(18_000, b'/');
    Dir::open_absolute(&path).expect("trailing slashes are none");
}

#[test]
fn paths_that_cannot_be_are_refused() {
    assert_eq!(errno(Dir::open_absolute(b"relative")), Errno::INVAL.raw_os_error());
    assert_eq!(errno(Dir::open_absolute(b"")), Errno::INVAL.raw_os_error());
    assert_eq!(errno(Dir::open_absolute(b"/a\0b")), Errno::INVAL.raw_os_error());
    let long = vec![b'/'; MAX_PATH_BYTES + 1];
    assert_eq!(errno(Dir::open_absolute(&long)), Errno::INVAL.raw_os_error());
    let mut wide = vec![b'x'; 5_000];
    wide.splice(..0, *b"/");
    Dir::open_absolute(&wide).expect_err("no component is that long");
}

#[test]
fn a_link_is_never_opened_as_a_directory_or_a_file() {
    let (folder, target) = place();
    target.create_dir(name(b"dir"), 0o700).expect("room");
    target.create_file(name(b"file"), 0o600).expect("room");
    target.create_symlink(b"dir", name(b"to-dir")).expect("room");
    target.create_symlink(b"file", name(b"to-file")).expect("room");
    let dir = open(&folder);

    dir.open_child(name(b"to-dir")).expect_err("a link");
    assert_eq!(errno(dir.open_file(name(b"to-file"))), Errno::LOOP.raw_os_error());
    assert_eq!(errno(dir.open_child(name(b"file"))), Errno::NOTDIR.raw_os_error());
    dir.open_file(name(b"dir")).expect_err("a directory");
    assert_eq!(dir.read_link(name(b"to-dir")).expect("a link"), b"dir");
    assert_eq!(errno(dir.read_link(name(b"file"))), Errno::INVAL.raw_os_error());
    let mut last_is_link = folder.path().as_os_str().as_encoded_bytes().to_vec();
    last_is_link.extend_from_slice(b"/to-dir");
    Dir::open_absolute(&last_is_link).expect_err("a link at the end");
    last_is_link.extend_from_slice(b"/.");
    Dir::open_absolute(&last_is_link).expect("a link on the way");
}

#[test]
fn a_long_link_is_read_whole() {
    let (folder, target) = place();
    let long = vec![b'l'; 4_000];
    target.create_symlink(&long, name(b"link")).expect("the file system takes it");
    let dir = open(&folder);
    assert_eq!(dir.read_link(name(b"link")).expect("a link"), long);
    assert_eq!(dir.stat(name(b"link")).expect("there").size, 4_000);
}
