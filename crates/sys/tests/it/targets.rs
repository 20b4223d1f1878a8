//! Restoring: everything is made right where it belongs, and nothing elsewhere.

use holdall_sys::{DeviceNumber, FileKind, TargetDir, metadata, stat};
use rustix::io::Errno;

use crate::{errno, is_root, name, place};

#[test]
fn a_link_in_the_way_is_never_walked_through() {
    let (_outside_folder, outside) = place();
    let (folder, target) = place();
    let outside_path = _outside_folder.path().as_os_str().as_encoded_bytes();
    target.create_symlink(outside_path, name(b"way-out")).expect("room");
    target.create_symlink(b"..", name(b"up")).expect("room");
    target.create_symlink(b"/proc/self/cwd", name(b"magic")).expect("room");

    for link in [b"way-out".as_slice(), b"up", b"magic"] {
        target.open_dir(name(link)).expect_err("a link");
        assert_eq!(errno(target.create_file(name(link), 0o600)), Errno::EXIST.raw_os_error());
        assert_eq!(errno(target.create_dir(name(link), 0o700)), Errno::EXIST.raw_os_error());
        assert_eq!(errno(target.create_symlink(b"x", name(link))), Errno::EXIST.raw_os_error());
        assert_eq!(
            errno(target.create_special(
                name(link),
                FileKind::Fifo,
                DeviceNumber::default(),
                0o600
            )),
            Errno::EXIST.raw_os_error()
        );
    }
    assert!(outside.as_dir().entries().expect("readable").is_empty());
    assert_eq!(target.as_dir().entries().expect("readable").len(), 3);
    drop(folder);
}

#[test]
fn metadata_set_by_name_lands_on_the_link_and_not_behind_it() {
    let (_folder, target) = place();
    let file = target.create_file(name(b"file"), 0o600).expect("room");
    let before = stat::of_fd(&file).expect("open");
    target.create_symlink(b"file", name(b"link")).expect("room");
    let time = holdall_sys::Timestamp { secs: 4_000_000_000, nanos: 123_456_789 };

    metadata::set_mtime_at(&target, name(b"link"), time).expect("one's own link");
    let mode = metadata::set_mode_at(&target, name(b"link"), 0o777);
    assert_eq!(errno(mode), Errno::OPNOTSUPP.raw_os_error());
    let owner = metadata::set_owner_at(&target, name(b"link"), Some(4_321), Some(8_765));
    let link = target.as_dir().stat(name(b"link")).expect("there");
    if is_root() {
        owner.expect("root may");
        assert_eq!((link.uid, link.gid), (4_321, 8_765));
    } else {
        assert_eq!(errno(owner), Errno::PERM.raw_os_error());
    }
    assert_eq!(link.mtime, time);
    assert_eq!(stat::of_fd(&file).expect("open"), before);
}

#[test]
fn owner_mode_and_time_are_set_on_what_is_open_and_on_what_cannot_be() {
    let (_folder, target) = place();
    let dir = target.create_dir(name(b"dir"), 0o700).expect("room");
    target
        .create_special(name(b"pipe"), FileKind::Fifo, DeviceNumber::default(), 0o600)
        .expect("room");
    let time = holdall_sys::Timestamp { secs: 1, nanos: 2 };
    metadata::set_mode(&dir, 0o3771).expect("one's own");
    metadata::set_mtime(&dir, time).expect("one's own");
    metadata::set_mode_at(&target, name(b"pipe"), 0o640).expect("one's own");
    metadata::set_mtime_at(&target, name(b"pipe"), time).expect("one's own");

    let dir_stat = dir.as_dir().stat_self().expect("open");
    let pipe = target.as_dir().stat(name(b"pipe")).expect("there");
    assert_eq!((dir_stat.mode, dir_stat.mtime), (0o3771, time));
    assert_eq!((pipe.kind, pipe.mode, pipe.mtime), (FileKind::Fifo, 0o640, time));
    let owner = metadata::set_owner(&dir, Some(12), None);
    if is_root() {
        owner.expect("root may");
        let changed = dir.as_dir().stat_self().expect("open");
        assert_eq!((changed.uid, changed.gid), (12, dir_stat.gid));
    } else {
        assert_eq!(errno(owner), Errno::PERM.raw_os_error());
    }
}

#[test]
fn values_that_mean_something_else_to_the_system_are_refused() {
    let (_folder, target) = place();
    let file = target.create_file(name(b"file"), 0o600).expect("room");
    let invalid = Errno::INVAL.raw_os_error();
    assert_eq!(errno(metadata::set_owner(&file, Some(u32::MAX), None)), invalid);
    assert_eq!(errno(metadata::set_owner(&file, None, Some(u32::MAX))), invalid);
    // UTIME_NOW and UTIME_OMIT are such nanoseconds.
    for nanos in [1_000_000_000, (1 << 30) - 1, (1 << 30) - 2, u32::MAX] {
        let time = holdall_sys::Timestamp { secs: 0, nanos };
        assert_eq!(errno(metadata::set_mtime(&file, time)), invalid);
    }
}

#[test]
fn special_files_are_made_as_far_as_the_user_may() {
    let (_folder, target) = place();
    let rdev = DeviceNumber { major: 1, minor: 300_000 };
    for kind in [FileKind::Fifo, FileKind::Socket] {
        target.create_special(name(b"special"), kind, rdev, 0o600).expect("everybody may");
        let stat = target.as_dir().stat(name(b"special")).expect("there");
        assert_eq!((stat.kind, stat.mode, stat.rdev), (kind, 0o600, DeviceNumber::default()));
        target.unlink(name(b"special")).expect("there");
    }
    for kind in [FileKind::CharDevice, FileKind::BlockDevice] {
        let made = target.create_special(name(b"device"), kind, rdev, 0o600);
        if is_root() {
            made.expect("root may");
            let stat = target.as_dir().stat(name(b"device")).expect("there");
            assert_eq!((stat.kind, stat.rdev), (kind, rdev));
            target.unlink(name(b"device")).expect("there");
        } else {
            assert_eq!(errno(made), Errno::PERM.raw_os_error());
        }
    }
    let file = target.create_special(name(b"file"), FileKind::File, rdev, 0o600);
    assert_eq!(errno(file), Errno::INVAL.raw_os_error());
}

#[test]
fn hard_links_reach_across_directories_and_link_links_themselves() {
    let (_folder, target) = place();
    let dir = target.create_dir(name(b"dir"), 0o700).expect("room");
    target.create_symlink(b"nowhere", name(b"link")).expect("room");
    dir.link_from(&target, name(b"link"), name(b"same")).expect("one file system");
    let first = target.as_dir().stat(name(b"link")).expect("there");
    let second = dir.as_dir().stat(name(b"same")).expect("there");
    assert_eq!(first, second);
    assert_eq!((first.kind, first.nlink), (FileKind::Symlink, 2));
}

#[test]
fn names_are_moved_and_removed() {
    let (folder, target) = place();
    let dir = target.create_dir(name(b"dir"), 0o700).expect("room");
    target.create_file(name(b"a"), 0o600).expect("room");
    target.create_file(name(b"b"), 0o600).expect("room");
    let kept = target.rename_no_replace(name(b"a"), &target, name(b"b"));
    assert_eq!(errno(kept), Errno::EXIST.raw_os_error());
    target.rename(name(b"a"), &dir, name(b"moved")).expect("one file system");
    assert_eq!(errno(target.remove_dir(name(b"dir"))), Errno::NOTEMPTY.raw_os_error());
    target.unlink(name(b"dir")).expect_err("a directory");
    dir.unlink(name(b"moved")).expect("there");
    target.remove_dir(name(b"dir")).expect("empty");
    target.unlink(name(b"b")).expect("there");
    target.sync().expect("on any file system");
    assert!(target.as_dir().entries().expect("readable").is_empty());
    TargetDir::open_root(&folder.path().join("dir")).expect_err("it was removed");
}

#[test]
fn a_new_file_is_its_users_alone() {
    let (_folder, target) = place();
    let file = target.create_file(name(b"secret"), 0o600).expect("room");
    assert_eq!(stat::of_fd(&file).expect("open").mode, 0o600);
}
