//! Every difference between two trees is told, and what changed meanwhile is named apart.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use super::*;
use holdall_sys::{Timestamp, metadata};

/// Long after everything that a test makes.
const LATER: Timestamp = Timestamp { secs: 1 << 40, nanos: 0 };
/// Long before.
const BEFORE: Timestamp = Timestamp { secs: 0, nanos: 0 };

fn build(root: &Path) {
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::write(root.join("a/one"), b"one").unwrap();
    fs::write(root.join("a/b/two"), vec![2; 300_000]).unwrap();
    fs::hard_link(root.join("a/one"), root.join("a/uno")).unwrap();
    symlink("nowhere", root.join("link")).unwrap();
    let time = Timestamp { secs: 1_000_000_000, nanos: 5 };
    for path in ["a/one", "a/b/two", "a/b", "a"] {
        metadata::set_mtime(fs::File::open(root.join(path)).unwrap(), time).unwrap();
    }
    let top = fs::File::open(root).unwrap();
    let link = holdall_sys::Name::new(b"link").unwrap();
    metadata::set_mtime_at(&top, link, time).unwrap();
    metadata::set_mtime(top, time).unwrap();
}

fn pair() -> (tempfile::TempDir, tempfile::TempDir) {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    build(one.path());
    build(other.path());
    (one, other)
}

fn compared(source: &Path, restored: &Path, since: Timestamp) -> CompareReport {
    let options = CompareOptions { since, left_out: &|_| false };
    compare(source, restored, &options, &Run::new()).unwrap()
}

/// The paths that differ after `edit` on the restored side.
fn found_after(edit: impl FnOnce(&Path)) -> Vec<String> {
    let (source, restored) = pair();
    edit(restored.path());
    let report = compared(source.path(), restored.path(), LATER);
    assert_eq!(report.identical, report.differences.is_empty());
    let mut paths: Vec<_> = report
        .differences
        .iter()
        .map(|found| String::from_utf8(found.path.clone()).unwrap())
        .collect();
    paths.sort();
    paths
}

#[test]
fn two_trees_made_alike_are_identical() {
    let (source, restored) = pair();
    let report = compared(source.path(), restored.path(), LATER);
    assert!(report.identical, "{:?}", report.differences);
    assert_eq!((report.items, report.changed_count), (7, 0));
    assert_eq!(report.bytes, 300_006);
}

#[test]
fn content_mode_links_and_what_is_missing_or_too_much_are_found() {
    let keep = |path: &Path, edit: &dyn Fn(&Path)| {
        let time = fs::symlink_metadata(path).unwrap();
        edit(path);
        let mtime = Timestamp { secs: time.mtime(), nanos: time.mtime_nsec() as u32 };
        metadata::set_mtime(fs::File::open(path).unwrap(), mtime).unwrap();
    };
    let edited = found_after(|root| {
        keep(&root.join("a/b/two"), &|path| {
            let mut bytes = fs::read(path).unwrap();
            bytes[299_999] = 3;
            fs::write(path, bytes).unwrap();
        });
    });
    assert_eq!(edited, ["a/b/two"]);
    let mode = found_after(|root| {
        fs::set_permissions(root.join("a/b"), fs::Permissions::from_mode(0o700)).unwrap();
    });
    assert_eq!(mode, ["a/b"]);
    let unlinked = found_after(|root| {
        keep(&root.join("a"), &|path| {
            fs::remove_file(path.join("uno")).unwrap();
            fs::copy(path.join("one"), path.join("uno")).unwrap();
            let time = Timestamp { secs: 1_000_000_000, nanos: 5 };
            metadata::set_mtime(fs::File::open(path.join("uno")).unwrap(), time).unwrap();
        });
    });
    assert_eq!(unlinked, ["a/uno"]);
    let missing = found_after(|root| {
        keep(&root.join("a/b"), &|path| {
            fs::remove_file(path.join("two")).unwrap();
            fs::write(path.join("three"), b"").unwrap();
        })
    });
    assert_eq!(missing, ["a/b/three", "a/b/two"]);
}

#[test]
fn what_changed_since_the_backup_began_is_not_a_difference() {
    let (source, restored) = pair();
    fs::write(source.path().join("a/one"), b"ONE").unwrap();
    fs::write(source.path().join("new"), b"").unwrap();
    fs::remove_dir_all(source.path().join("a/b")).unwrap();
    let report = compared(source.path(), restored.path(), BEFORE);
    assert!(report.identical, "{:?}", report.differences);
    assert!(report.changed_count >= 3);
    assert!(!compared(source.path(), restored.path(), LATER).identical);
}

#[test]
fn what_the_backup_left_out_is_not_looked_at() {
    let (source, restored) = pair();
    fs::write(source.path().join("a/b/cache"), b"").unwrap();
    let left_out = |path: &[u8]| path.ends_with(b"/a/b");
    let options = CompareOptions { since: LATER, left_out: &left_out };
    let report = compare(source.path(), restored.path(), &options, &Run::new()).unwrap();
    assert!(report.identical, "{:?}", report.differences);
}
