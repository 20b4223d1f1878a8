//! Extended attributes of everything that can have them.

use holdall_sys::xattr::{self, Xattr};
use holdall_sys::{DeviceNumber, FileKind};
use rustix::io::Errno;

use crate::{errno, is_root, name, place};

fn attribute(name: &[u8], value: &[u8]) -> Xattr {
    Xattr { name: name.to_vec(), value: value.to_vec() }
}

#[test]
fn a_file_without_attributes_has_none() {
    let (_folder, target) = place();
    let file = target.create_file(name(b"file"), 0o600).expect("room");
    assert_eq!(xattr::read_fd(&file).expect("readable"), []);
    assert_eq!(xattr::read_at(&target, name(b"file")).expect("readable"), []);
}

#[test]
fn attributes_come_back_sorted_whole_and_raw() {
    let (_folder, target) = place();
    let file = target.create_file(name(b"file"), 0o600).expect("room");
    let large = vec![0xfe; 2_000];
    xattr::set_fd(&file, b"user.z", b"").expect("user attributes work here");
    xattr::set_fd(&file, b"user.\xff", b"\0\xff\n").expect("user attributes work here");
    xattr::set_fd(&file, b"user.large", b"short").expect("user attributes work here");
    xattr::set_fd(&file, b"user.large", &large).expect("user attributes work here");
    let expected = [
        attribute(b"user.large", &large),
        attribute(b"user.z", b""),
        attribute(b"user.\xff", b"\0\xff\n"),
    ];
    assert_eq!(xattr::read_fd(&file).expect("readable"), expected);
    assert_eq!(xattr::read_at(&target, name(b"file")).expect("readable"), expected);

    xattr::remove_fd(&file, b"user.large").expect("it is there");
    xattr::remove_at(&target, name(b"file"), b"user.z").expect("it is there");
    assert_eq!(xattr::read_fd(&file).expect("readable"), expected[2..]);
    let gone = xattr::remove_fd(&file, b"user.z");
    assert_eq!(errno(gone), Errno::NODATA.raw_os_error());
}

#[test]
fn more_names_than_fit_the_first_try_are_listed() {
    let (_folder, target) = place();
    let file = target.create_file(name(b"file"), 0o600).expect("room");
    let names: Vec<_> =
        (0..40).map(|number| format!("user.attribute-number-{number:02}")).collect();
    for name in &names {
        xattr::set_fd(&file, name.as_bytes(), b"v").expect("user attributes work here");
    }
    let found = xattr::read_fd(&file).expect("readable");
    assert_eq!(
        found.iter().map(|x| x.name.as_slice()).collect::<Vec<_>>(),
        names.iter().map(String::as_bytes).collect::<Vec<_>>()
    );
}

#[test]
fn links_and_pipes_have_attributes_of_their_own_where_the_user_may() {
    let (_folder, target) = place();
    let file = target.create_file(name(b"file"), 0o600).expect("room");
    target.create_symlink(b"file", name(b"link")).expect("room");
    target
        .create_special(name(b"pipe"), FileKind::Fifo, DeviceNumber::default(), 0o600)
        .expect("room");
    for entry in [b"link".as_slice(), b"pipe"] {
        let set = xattr::set_at(&target, name(entry), b"trusted.t", b"its own");
        let found = xattr::read_at(&target, name(entry)).expect("readable");
        if is_root() {
            set.expect("root may");
            assert_eq!(found, [attribute(b"trusted.t", b"its own")]);
        } else {
            assert_eq!(errno(set), Errno::PERM.raw_os_error());
            assert_eq!(found, []);
        }
    }
    assert_eq!(xattr::read_fd(&file).expect("readable"), []);
}

#[test]
fn access_control_lists_of_a_directory_are_raw_bytes() {
    let (_folder, target) = place();
    let dir = target.create_dir(name(b"dir"), 0o700).expect("room");
    // Version 2; user::rwx, user:1000:r-x, group::---, mask::r-x, other::--- (acl(5), little end).
    let acl = [
        &2_u32.to_le_bytes()[..],
        &[1, 0, 7, 0, 255, 255, 255, 255],
        &[2, 0, 5, 0, 0xe8, 3, 0, 0],
        &[4, 0, 0, 0, 255, 255, 255, 255],
        &[16, 0, 5, 0, 255, 255, 255, 255],
        &[32, 0, 0, 0, 255, 255, 255, 255],
    ]
    .concat();
    xattr::set_fd(&dir, b"system.posix_acl_access", &acl).expect("the file system has ACLs");
    xattr::set_fd(&dir, b"system.posix_acl_default", &acl).expect("the file system has ACLs");
    let expected =
        [attribute(b"system.posix_acl_access", &acl), attribute(b"system.posix_acl_default", &acl)];
    assert_eq!(xattr::read_fd(&dir).expect("readable"), expected);
}

#[test]
fn a_file_system_without_attributes_has_none() {
    let proc = holdall_sys::Dir::open_absolute(b"/proc/sys").expect("proc is mounted");
    assert_eq!(xattr::read_fd(&proc).expect("no error"), []);
    assert_eq!(xattr::read_at(&proc, name(b"kernel")).expect("no error"), []);
}
