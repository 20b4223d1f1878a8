//! Each single difference is found, and nothing else.

use std::os::unix::fs::FileExt;
use std::path::Path;

use holdall_sys::{DeviceNumber, FileKind, Name, TargetDir, Timestamp, metadata, users, xattr};

use super::{CompareOptions, Difference, Field, compare_trees};

const TIME: Timestamp = Timestamp { secs: 1_000_000_000, nanos: 5 };

/// Two equal trees; the tests change the second.
struct Pair {
    left: tempfile::TempDir,
    right: tempfile::TempDir,
}

fn name(bytes: &[u8]) -> Name<'_> {
    Name::new(bytes).expect("a plain name")
}

impl Pair {
    fn new() -> Self {
        let folder = || tempfile::tempdir().expect("a temporary folder");
        let pair = Self { left: folder(), right: folder() };
        for path in [pair.left.path(), pair.right.path()] {
            fill(&TargetDir::open_root(path).expect("there"));
        }
        assert_eq!(pair.differences(), []);
        pair
    }

    /// The second tree's directory `dir`, which holds everything.
    fn right(&self) -> TargetDir {
        open(self.right.path())
    }

    fn differences(&self) -> Vec<Difference> {
        compare_trees(self.left.path(), self.right.path(), &CompareOptions::default())
    }

    /// Puts back the times that a change in the directory moved, and names what differs.
    fn fields(&self) -> Vec<(String, Field)> {
        metadata::set_mtime(self.right(), TIME).expect("one's own");
        let path = |path: Vec<u8>| String::from_utf8(path).expect("plain names");
        self.differences().into_iter().map(|found| (path(found.path), found.field)).collect()
    }
}

fn open(path: &Path) -> TargetDir {
    TargetDir::open_root(&path.join("dir")).expect("it was made")
}

fn fill(root: &TargetDir) {
    let dir = root.create_dir(name(b"dir"), 0o700).expect("room");
    let file = dir.create_file(name(b"file"), 0o600).expect("room");
    file.write_all_at(b"content", 0).expect("room");
    xattr::set_fd(&file, b"user.note", b"value").expect("user attributes work");
    dir.link_from(&dir, name(b"file"), name(b"hard")).expect("one file system");
    dir.create_symlink(b"target", name(b"link")).expect("room");
    dir.create_special(name(b"pipe"), FileKind::Fifo, DeviceNumber::default(), 0o600)
        .expect("room");
    let sparse = dir.create_file(name(b"sparse"), 0o600).expect("room");
    sparse.set_len(1 << 40).expect("a hole is free");
    sparse.write_all_at(&[1; 4096], 1 << 30).expect("room");
    for entry in [b"file".as_slice(), b"link", b"pipe", b"sparse"] {
        metadata::set_mtime_at(&dir, name(entry), TIME).expect("one's own");
    }
    metadata::set_mtime(&dir, TIME).expect("one's own");
    metadata::set_mtime(root, TIME).expect("one's own");
}

fn touch_back(dir: &TargetDir, entry: &[u8]) {
    metadata::set_mtime_at(dir, name(entry), TIME).expect("one's own");
}

fn found(path: &str, field: Field) -> (String, Field) {
    (path.to_owned(), field)
}

#[test]
fn something_missing_and_something_extra_are_found() {
    let pair = Pair::new();
    pair.right().unlink(name(b"link")).expect("there");
    pair.right().create_dir(name(b"more"), 0o700).expect("room");
    let expected = [found("dir/link", Field::Missing), found("dir/more", Field::Extra)];
    assert_eq!(pair.fields(), expected);
}

#[test]
fn another_kind_is_found() {
    let pair = Pair::new();
    pair.right().unlink(name(b"pipe")).expect("there");
    pair.right().create_file(name(b"pipe"), 0o600).expect("room");
    assert_eq!(pair.fields(), [found("dir/pipe", Field::Kind)]);
}

#[test]
fn another_mode_is_found_on_files_directories_and_pipes() {
    let pair = Pair::new();
    metadata::set_mode(pair.right(), 0o1700).expect("one's own");
    metadata::set_mode_at(pair.right(), name(b"pipe"), 0o4600).expect("one's own");
    metadata::set_mode_at(pair.right(), name(b"sparse"), 0o601).expect("one's own");
    let expected = ["dir", "dir/pipe", "dir/sparse"].map(|path| found(path, Field::Mode));
    assert_eq!(pair.fields(), expected);
}

#[test]
fn another_owner_is_found_where_the_user_can_make_one() {
    let pair = Pair::new();
    let set = metadata::set_owner_at(pair.right(), name(b"link"), Some(3), Some(4));
    if users::effective_uid() == 0 {
        set.expect("root may");
        let expected = [found("dir/link", Field::User), found("dir/link", Field::Group)];
        assert_eq!(pair.fields(), expected);
        let options = CompareOptions { owners: false, ..CompareOptions::default() };
        assert_eq!(compare_trees(pair.left.path(), pair.right.path(), &options), []);
    } else {
        set.expect_err("only root may");
        assert_eq!(pair.fields(), []);
    }
}

#[test]
fn a_nanosecond_is_found_on_files_links_directories_and_the_root() {
    let pair = Pair::new();
    let later = Timestamp { nanos: TIME.nanos + 1, ..TIME };
    for entry in [b"link".as_slice(), b"sparse"] {
        metadata::set_mtime_at(pair.right(), name(entry), later).expect("one's own");
    }
    let root = TargetDir::open_root(pair.right.path()).expect("there");
    metadata::set_mtime(&root, later).expect("one's own");
    let expected = ["", "dir/link", "dir/sparse"].map(|path| found(path, Field::Mtime));
    assert_eq!(pair.fields(), expected);

    metadata::set_mtime(pair.right(), later).expect("one's own");
    let options = CompareOptions { roots: false, ..CompareOptions::default() };
    let paths = compare_trees(pair.left.path(), pair.right.path(), &options);
    let paths: Vec<_> = paths.iter().map(|found| found.path.as_slice()).collect();
    assert_eq!(paths, [b"dir".as_slice(), b"dir/link", b"dir/sparse"]);
}

#[test]
fn another_target_of_the_same_length_is_found() {
    let pair = Pair::new();
    pair.right().unlink(name(b"link")).expect("there");
    pair.right().create_symlink(b"tarGet", name(b"link")).expect("room");
    touch_back(&pair.right(), b"link");
    assert_eq!(pair.fields(), [found("dir/link", Field::Target)]);
}

#[test]
fn another_device_number_is_found_where_the_user_can_make_one() {
    let pair = Pair::new();
    let make = |dir: &TargetDir, minor| {
        let made = dir.create_special(
            name(b"dev"),
            FileKind::CharDevice,
            DeviceNumber { major: 1, minor },
            0o600,
        );
        metadata::set_mtime_at(dir, name(b"dev"), TIME).is_ok() && made.is_ok()
    };
    let left = open(pair.left.path());
    let is_made = make(&left, 3) && make(&pair.right(), 5);
    metadata::set_mtime(&left, TIME).expect("one's own");
    assert_eq!(is_made, users::effective_uid() == 0);
    let expected = [found("dir/dev", Field::Device)];
    assert_eq!(pair.fields(), expected[..usize::from(is_made)]);
}

#[test]
fn attributes_that_changed_came_or_went_are_found() {
    let pair = Pair::new();
    let right = pair.right();
    xattr::set_at(&right, name(b"file"), b"user.note", b"other").expect("one's own");
    xattr::set_at(&right, name(b"file"), b"user.more", b"value").expect("one's own");
    xattr::set_fd(&right, b"user.dir", b"value").expect("one's own");
    let on = |path, name: &[u8]| found(path, Field::Xattr(name.to_vec()));
    let expected = [
        on("dir", b"user.dir"),
        on("dir/file", b"user.note"),
        on("dir/file", b"user.more"),
        on("dir/hard", b"user.note"),
        on("dir/hard", b"user.more"),
    ];
    assert_eq!(pair.fields(), expected);
    xattr::remove_at(&right, name(b"file"), b"user.note").expect("there");
    assert_eq!(pair.fields(), expected);
    let options = CompareOptions { xattrs: false, ..CompareOptions::default() };
    assert_eq!(compare_trees(pair.left.path(), pair.right.path(), &options), []);
}

#[test]
fn one_byte_of_content_is_found_whatever_the_times_say() {
    let pair = Pair::new();
    let path = pair.right.path().join("dir/file");
    let file = std::fs::OpenOptions::new().write(true).open(path).expect("there");
    file.write_all_at(b"C", 0).expect("room");
    touch_back(&pair.right(), b"file");
    let expected = ["dir/file", "dir/hard"].map(|path| found(path, Field::Content));
    assert_eq!(pair.fields(), expected);
}

#[test]
fn another_length_with_an_equal_start_is_found() {
    let pair = Pair::new();
    let path = pair.right.path().join("dir/file");
    let file = std::fs::OpenOptions::new().write(true).open(path).expect("there");
    file.write_all_at(b"content and more", 0).expect("room");
    touch_back(&pair.right(), b"file");
    let expected = ["dir/file", "dir/hard"].map(|path| found(path, Field::Size));
    assert_eq!(pair.fields(), expected);
}

#[test]
fn data_in_a_hole_is_found_and_so_is_a_hole_that_was_filled_with_zeros() {
    let pair = Pair::new();
    let path = pair.right.path().join("dir/sparse");
    let file = std::fs::OpenOptions::new().write(true).open(path).expect("there");
    file.write_all_at(&[0; 100_000], 1 << 39).expect("room");
    touch_back(&pair.right(), b"sparse");
    assert_eq!(pair.fields(), [found("dir/sparse", Field::Holes)]);

    file.write_all_at(&[1], 1 << 39).expect("room");
    touch_back(&pair.right(), b"sparse");
    let both = [Field::Content, Field::Holes].map(|field| found("dir/sparse", field));
    assert_eq!(pair.fields(), both);
}

#[test]
fn names_that_are_no_longer_one_file_are_found_and_those_that_became_one() {
    let pair = Pair::new();
    let right = pair.right();
    right.unlink(name(b"hard")).expect("there");
    let copy = right.create_file(name(b"hard"), 0o600).expect("room");
    copy.write_all_at(b"content", 0).expect("room");
    xattr::set_fd(&copy, b"user.note", b"value").expect("user attributes work");
    touch_back(&right, b"hard");
    assert_eq!(pair.fields(), [found("dir/hard", Field::HardLinks)]);

    let swapped = compare_trees(pair.right.path(), pair.left.path(), &CompareOptions::default());
    assert_eq!(swapped.len(), 1);
    assert_eq!(swapped[0].field, Field::HardLinks);
}

#[test]
fn a_tree_that_is_not_there_is_a_difference() {
    let pair = Pair::new();
    let nowhere = pair.left.path().join("nowhere");
    let options = CompareOptions::default();
    let differences = compare_trees(pair.left.path(), &nowhere, &options);
    assert_eq!(differences.len(), 1);
    assert_eq!(differences[0].field, Field::Unreadable);
}

#[test]
fn what_is_left_out_is_not_looked_at() {
    let pair = Pair::new();
    pair.right().create_dir(name(b"more"), 0o700).expect("room");
    metadata::set_mtime(pair.right(), TIME).expect("one's own");
    let left_out = vec![b"dir/more".to_vec()];
    let options = CompareOptions { left_out, ..CompareOptions::default() };
    assert_eq!(compare_trees(pair.left.path(), pair.right.path(), &options), []);
}
