//! Files: metadata, holes, locks, and what lies under a path.

use std::os::unix::fs::FileExt;
use std::path::Path;

use holdall_sys::lock::Held;
use holdall_sys::sparse::{self, Extent};
use holdall_sys::{FileKind, Timestamp, disk, host, limits, memory, metadata, mounts, stat};

use crate::{name, open, place};

const TIB: u64 = 1 << 40;

#[test]
fn an_open_file_and_its_name_tell_the_same() {
    let (folder, target) = place();
    let file = target.create_file(name(b"file"), 0o600).expect("room");
    file.write_all_at(b"content", 0).expect("room");
    metadata::set_mode(&file, 0o4751).expect("one's own file");
    metadata::set_mtime(&file, Timestamp { secs: -5, nanos: 999_999_999 }).expect("one's own");

    let by_name = open(&folder).stat(name(b"file")).expect("it is there");
    assert_eq!(stat::of_fd(&file).expect("it is open"), by_name);
    assert_eq!(by_name.kind, FileKind::File);
    assert_eq!(by_name.mode, 0o4751);
    assert_eq!(by_name.size, 7);
    assert_eq!(by_name.nlink, 1);
    assert_eq!(by_name.mtime, Timestamp { secs: -5, nanos: 999_999_999 });
    assert_eq!(by_name.device, disk::device_of(folder.path()).expect("it is there"));
    assert!(by_name.ctime.secs > 0 && by_name.blocks > 0);
}

#[test]
fn reading_a_file_opens_it_with_its_metadata() {
    let (folder, target) = place();
    target.create_file(name(b"file"), 0o600).expect("room").write_all_at(b"abc", 0).expect("room");
    let (file, stat) = open(&folder).open_file(name(b"file")).expect("a regular file");
    let mut content = [0; 3];
    file.read_exact_at(&mut content, 0).expect("three bytes");
    assert_eq!((&content, stat.size), (b"abc", 3));
}

#[test]
fn opening_a_pipe_neither_waits_nor_works() {
    let (folder, target) = place();
    target.create_special(name(b"pipe"), FileKind::Fifo, Default::default(), 0o600).expect("room");
    let error = open(&folder).open_file(name(b"pipe")).expect_err("not a regular file");
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}

#[test]
fn the_mount_of_a_file_is_found_by_its_number() {
    let (folder, target) = place();
    let stat = target.as_dir().stat_self().expect("open");
    let table = mounts::Mounts::read().expect("proc is mounted");
    let mount = table.of_path(folder.path()).expect("there").expect("in the table");
    assert_eq!(stat.mount_id, Some(mount.id));
    let point = mounts::mount_point_of(folder.path()).expect("in the table");
    assert!(folder.path().as_os_str().as_encoded_bytes().starts_with(&point));
}

#[test]
fn data_between_holes_is_found_and_a_hole_of_3_tib_takes_no_time() {
    let (_folder, target) = place();
    let file = target.create_file(name(b"sparse"), 0o600).expect("room");
    file.set_len(3 * TIB).expect("a hole is free");
    assert_eq!(sparse::data_extents(&file, 3 * TIB).expect("readable"), []);

    file.write_all_at(&[1; 4096], 2 * TIB).expect("room");
    file.write_all_at(&[1; 4096], 0).expect("room");
    let extents = sparse::data_extents(&file, 3 * TIB).expect("readable");
    let expected = [0, 2 * TIB].map(|offset| Extent { offset, len_bytes: 4096 });
    assert_eq!(extents, expected);
    assert!(stat::of_fd(&file).expect("open").may_have_holes());

    sparse::punch_hole(&file, 0, 4096).expect("the file system has holes");
    assert_eq!(sparse::data_extents(&file, 3 * TIB).expect("readable"), expected[1..]);
}

#[test]
fn extents_never_pass_the_size_that_was_asked_for() {
    let (_folder, target) = place();
    let file = target.create_file(name(b"file"), 0o600).expect("room");
    file.write_all_at(&[1; 10_000], 0).expect("room");
    assert_eq!(
        sparse::data_extents(&file, 5_000).expect("readable"),
        [Extent { offset: 0, len_bytes: 5_000 }]
    );
    assert_eq!(sparse::data_extents(&file, 0).expect("readable"), []);
    assert_eq!(sparse::next_extent(&file, 20_000, 30_000).expect("readable"), None);
    assert!(!stat::of_fd(&file).expect("open").may_have_holes());
}

#[test]
fn a_lock_is_one_holders_until_it_lets_go() {
    let (folder, target) = place();
    target.create_file(name(b"lock"), 0o600).expect("room");
    let open = || std::fs::File::open(folder.path().join("lock")).expect("it is there");
    let exclusive = || Held::exclusive(open()).expect("locks work here");
    let shared = || Held::shared(open()).expect("locks work here");

    let alone = exclusive().expect("nobody has it");
    assert!(alone.is_locked());
    assert!(shared().is_none());
    drop(alone);
    let together = [shared(), shared()];
    assert!(together.iter().all(Option::is_some));
    assert!(exclusive().is_none());
    drop(together);
    assert!(exclusive().is_some());
}

/// A process that is just being started has all files of its parent open until it runs its program.
#[test]
fn a_lock_ends_with_its_holder_though_another_has_the_file_open() {
    let (folder, target) = place();
    let file = target.create_file(name(b"lock"), 0o600).expect("room");
    let again = std::fs::File::open(folder.path().join("lock")).expect("it is there");
    let inherited = file.try_clone().expect("a descriptor is free");
    let held = Held::exclusive(file).expect("locks work here").expect("nobody has it");
    drop(held);
    assert!(Held::exclusive(again).expect("locks work here").is_some());
    drop(inherited);
}

#[test]
fn what_lies_under_a_path_is_told() {
    let (folder, _target) = place();
    assert!(disk::free_bytes(folder.path()).expect("there") > 0);
    let table = mounts::Mounts::read().expect("proc is mounted");
    let mount = table.of_path(folder.path()).expect("there").expect("in the table");
    let is_memory = matches!(mount.file_system.as_slice(), b"tmpfs" | b"ramfs");
    assert_eq!(memory::is_ram_disk(folder.path()).expect("there"), is_memory);
    let in_memory = table.iter().find(|mount| mount.file_system == b"tmpfs");
    if let Some(path) = in_memory.and_then(|mount| std::str::from_utf8(&mount.point).ok()) {
        assert!(memory::is_ram_disk(Path::new(path)).expect("mounted"));
    }
}

#[test]
fn the_limit_of_open_files_is_raised_to_the_hard_one() {
    let hard = limits::raise_open_files().expect("allowed to everybody");
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    assert_eq!((limit.current, limit.maximum), (hard, hard));
}

#[test]
fn the_host_has_a_name_and_a_time() {
    assert!(!host::host_name().is_empty());
    assert!(host::now().secs > 1_700_000_000 && host::now().nanos < 1_000_000_000);
}
