//! The tree is what it claims to be.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use holdall_sys::{Dir, FileKind, Name, sparse, users, xattr};

use super::{FidelitySizes, fidelity_tree};
use crate::{CompareOptions, compare_trees};

fn made() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let left_out = fidelity_tree(folder.path(), &FidelitySizes::small()).expect("room");
    assert_eq!(left_out.is_empty(), users::effective_uid() == 0, "{left_out:?}");
    folder
}

fn open(path: &Path) -> Dir {
    Dir::open_absolute(path.as_os_str().as_bytes()).expect("it was made")
}

fn name(bytes: &[u8]) -> Name<'_> {
    Name::new(bytes).expect("a plain name")
}

#[test]
fn two_trees_are_alike_in_everything() {
    let (left, right) = (made(), made());
    let options = CompareOptions::default();
    assert_eq!(compare_trees(left.path(), right.path(), &options), []);
}

#[test]
fn the_deepest_path_is_as_long_as_was_asked_for() {
    let folder = made();
    let mut path_bytes = "deep/d".len();
    let mut here = open(&folder.path().join("deep/d"));
    loop {
        let listing = here.entries().expect("readable");
        let dirs = listing.iter().filter(|entry| entry.kind() == Some(FileKind::Dir));
        let Some(dir) = dirs.map(|entry| entry.name()).find(|name| name.as_bytes().len() == 200)
        else {
            break;
        };
        path_bytes += 1 + dir.as_bytes().len();
        here = here.open_child(dir).expect("any depth");
    }
    assert!(path_bytes + "/file-at-the-bottom".len() >= 6_000);
    assert_eq!(here.stat(name(b"file-at-the-bottom")).expect("there").size, 10);
}

#[test]
fn long_holes_take_no_room_and_data_is_where_it_was_put() {
    let folder = made();
    let dir = open(&folder.path().join("sparse"));
    let (file, stat) = dir.open_file(name(b"data-after-longest-hole")).expect("a file");
    assert_eq!(stat.size, 3 << 40);
    assert!(stat.blocks < 1_000);
    let extents = sparse::data_extents(&file, stat.size).expect("readable");
    assert_eq!(extents.iter().map(|extent| extent.len_bytes).collect::<Vec<_>>(), [64 << 10]);
    assert_eq!(dir.stat(name(b"large")).expect("there").size, 6 << 30);
    let (file, stat) = dir.open_file(name(b"many-holes")).expect("a file");
    assert_eq!(sparse::data_extents(&file, stat.size).expect("readable").len(), 50);
}

#[test]
fn links_share_their_inodes_across_directories() {
    let folder = made();
    let first = open(&folder.path().join("links/hard/first"));
    let second = open(&folder.path().join("links/hard/second"));
    for (left, right) in [
        (b"file".as_slice(), b"file-elsewhere".as_slice()),
        (b"symlink", b"symlink"),
        (b"fifo", b"fifo"),
    ] {
        let left = first.stat(name(left)).expect("there");
        let right = second.stat(name(right)).expect("there");
        assert_eq!(left, right);
        assert!(left.nlink >= 2);
    }
    assert_eq!(second.stat(name(b"many-0")).expect("there").nlink, 100);
    let link = first.stat(name(b"symlink")).expect("there");
    assert_eq!(link.kind, FileKind::Symlink);
}

/// The kernel writes an access control list's mask into the mode: it has understood the bytes.
#[test]
fn access_control_lists_are_understood_by_the_kernel() {
    let folder = made();
    let acl = folder.path().join("attributes/acl");
    let dir = open(&acl);
    assert_eq!(dir.stat(name(b"file")).expect("there").mode, 0o750);
    let both = open(&acl.join("dir-with-both"));
    let inherited = both.open_child(name(b"inherits")).expect("a directory");
    let inherited = xattr::read_fd(&inherited).expect("readable");
    assert!(inherited.iter().any(|xattr| xattr.name == b"system.posix_acl_default"));
    let plain = xattr::read_at(&both, name(b"plain")).expect("readable");
    assert_eq!(plain, []);

    // The tool of the `acl` package says the same, where it is installed.
    let Ok(listed) = Command::new("getfacl").arg("-n").arg("file").current_dir(&acl).output()
    else {
        return;
    };
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    for line in ["user:65534:rwx", "user:1:r--", "group:4000000000:r-x", "mask::r-x"] {
        assert!(listed.contains(line), "no {line} in\n{listed}");
    }
}

#[test]
fn times_before_1970_and_after_2038_and_large_attributes_are_really_there() {
    let folder = made();
    let times = open(&folder.path().join("metadata/times"));
    for kind in ["file", "dir", "link"] {
        let stat = |label: &str| times.stat(name(format!("{kind}-{label}").as_bytes()));
        let before = stat("last-nanosecond-of-1969").expect("there").mtime;
        let after = stat("2400").expect("there").mtime;
        assert_eq!((before.secs, before.nanos), (-1, 999_999_999), "of a {kind}");
        assert_eq!((after.secs, after.nanos), (13_569_465_600, 500_000_000), "of a {kind}");
    }
    let user = open(&folder.path().join("attributes/user"));
    let large = xattr::read_at(&user, name(b"large")).expect("readable");
    assert!(large[0].value.len() > 1_000);
    assert!(xattr::read_at(&user, name(b"many")).expect("readable").len() > 10);
}

#[test]
fn capabilities_are_there_for_root_and_left_out_for_others() {
    let folder = made();
    let trusted = folder.path().join("attributes/trusted");
    assert_eq!(trusted.exists(), users::effective_uid() == 0);
    if users::effective_uid() == 0 {
        let found = xattr::read_at(open(&trusted), name(b"capable-of-another"));
        assert_eq!(found.expect("readable")[0].name, b"security.capability");
    }
}
