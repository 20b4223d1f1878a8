//! Extended attributes, POSIX ACLs and file capabilities, as the raw bytes that the kernel keeps.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use holdall_sys::{DeviceNumber, FileKind, Name, users, xattr};

use super::LeftOut;
use super::place::Place;

/// The largest value that Linux takes, in bytes.
const MAX_VALUE_BYTES: usize = 64 << 10;

/// `cap_net_raw` and `cap_net_bind_service` permitted and effective, as in linux/capability.h.
const CAPABILITY_VERSION_2_EFFECTIVE: u32 = 0x0200_0001;
const CAP_NET_BIND_SERVICE_AND_RAW: u32 = 1 << 10 | 1 << 13;

/// The kinds of entry of an access control list, as in linux/posix_acl.h.
const ACL_USER_OBJ: u16 = 0x01;
const ACL_USER: u16 = 0x02;
const ACL_GROUP_OBJ: u16 = 0x04;
const ACL_GROUP: u16 = 0x08;
const ACL_MASK: u16 = 0x10;
const ACL_OTHER: u16 = 0x20;
const ACL_NO_ID: u32 = u32::MAX;

pub(super) fn make(place: &mut Place) -> io::Result<Vec<LeftOut>> {
    make_user(&mut place.sub(b"user")?)?;
    make_acls(&mut place.sub(b"acl")?)?;
    if users::effective_uid() != 0 {
        place.finish()?;
        return Ok(vec![LeftOut { what: "trusted attributes and capabilities" }]);
    }
    make_trusted(&mut place.sub(b"trusted")?)?;
    place.finish()?;
    Ok(Vec::new())
}

fn make_user(place: &mut Place) -> io::Result<()> {
    let few = place.file(b"few", b"content")?;
    xattr::set_fd(&few, b"user.empty", b"")?;
    xattr::set_fd(&few, b"user.binary", b"\0\xff\n=\"")?;
    xattr::set_fd(&few, b"user.name \xff\n=", b"odd name")?;
    let many = place.file(b"many", b"content")?;
    set_many(&many)?;
    let large = place.file(b"large", b"content")?;
    set_largest(&large)?;
    let long_name = place.file(b"long-name", b"content")?;
    xattr::set_fd(&long_name, &[b"user.".as_slice(), &[b'n'; 250]].concat(), b"v")?;
    let read_only = place.file(b"read-only", b"content")?;
    xattr::set_fd(&read_only, b"user.note", b"set before the mode")?;
    holdall_sys::metadata::set_mode(&read_only, 0o444)?;
    let mut dir = place.sub(b"dir")?;
    dir.file(b"inside", b"")?;
    dir.finish()?;
    xattr::set_fd(dir.dir(), b"user.on-a-directory", b"value")?;
    place.finish()
}

/// Sets up to 50 attributes, as many as the file system has room for.
fn set_many(file: &File) -> io::Result<()> {
    xattr::set_fd(file, b"user.many-00", b"value 0")?;
    for number in 1..50 {
        let name = format!("user.many-{number:02}");
        if xattr::set_fd(file, name.as_bytes(), name.as_bytes()).is_err() {
            break;
        }
    }
    Ok(())
}

/// Sets the largest attribute that the file system has room for, to within an eighth.
fn set_largest(file: &File) -> io::Result<()> {
    let mut len_bytes = MAX_VALUE_BYTES;
    loop {
        let value = crate::Random::new(5).bytes(len_bytes);
        match xattr::set_fd(file, b"user.large", &value) {
            Ok(()) => return Ok(()),
            Err(error) if len_bytes < 256 => return Err(error),
            Err(_) => len_bytes -= len_bytes / 8,
        }
    }
}

fn make_acls(place: &mut Place) -> io::Result<()> {
    let access = acl(&[
        (ACL_USER_OBJ, 7, ACL_NO_ID),
        (ACL_USER, 4, 1),
        (ACL_USER, 7, 65_534),
        (ACL_GROUP_OBJ, 4, ACL_NO_ID),
        (ACL_GROUP, 5, 4_000_000_000),
        (ACL_MASK, 5, ACL_NO_ID),
        (ACL_OTHER, 0, ACL_NO_ID),
    ]);
    let default = acl(&[
        (ACL_USER_OBJ, 7, ACL_NO_ID),
        (ACL_USER, 7, 1),
        (ACL_GROUP_OBJ, 5, ACL_NO_ID),
        (ACL_MASK, 7, ACL_NO_ID),
        (ACL_OTHER, 1, ACL_NO_ID),
    ]);
    let file = place.file(b"file", b"content")?;
    xattr::set_fd(&file, b"system.posix_acl_access", &access)?;
    let mut both = place.sub(b"dir-with-both")?;
    // Made before the default list is set, so without one: a restore must not let it inherit.
    both.file(b"plain", b"content")?;
    both.sub(b"plain-dir")?.finish()?;
    xattr::set_fd(both.dir(), b"system.posix_acl_access", &access)?;
    xattr::set_fd(both.dir(), b"system.posix_acl_default", &default)?;
    both.sub(b"inherits")?.finish()?;
    both.finish()?;
    let mut minimal = place.sub(b"dir-with-default")?;
    xattr::set_fd(minimal.dir(), b"system.posix_acl_default", &default)?;
    minimal.finish()?;
    place.finish()
}

/// Encodes an access control list of (kind, rwx bits, id) as the kernel keeps it in attributes:
/// version 2, then 8 bytes for each entry, least significant byte first.
fn acl(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut raw = 2_u32.to_le_bytes().to_vec();
    for (kind, bits, id) in entries {
        raw.extend(kind.to_le_bytes());
        raw.extend(bits.to_le_bytes());
        raw.extend(id.to_le_bytes());
    }
    raw
}

fn make_trusted(place: &mut Place) -> io::Result<()> {
    let file = place.file(b"file", b"content")?;
    xattr::set_fd(&file, b"trusted.on-a-file", b"value")?;
    let mut dir = place.sub(b"dir")?;
    xattr::set_fd(dir.dir(), b"trusted.on-a-directory", b"value")?;
    dir.finish()?;
    place.symlink(b"link", b"nowhere")?;
    xattr::set_at(place.dir(), Name::new(b"link")?, b"trusted.on-a-link", b"value")?;
    place.special(b"fifo", FileKind::Fifo, DeviceNumber::default())?;
    xattr::set_at(place.dir(), Name::new(b"fifo")?, b"trusted.on-a-fifo", b"value")?;
    let able = place.file(b"capable", b"content")?;
    set_capability(&able)?;
    // Whoever restores must set the owner first: changing it clears capabilities.
    let owned = place.file(b"capable-of-another", b"content")?;
    holdall_sys::metadata::set_owner(&owned, Some(1), Some(1))?;
    holdall_sys::metadata::set_mode(&owned, 0o755)?;
    set_capability(&owned)?;
    place.finish()
}

fn set_capability(fd: impl AsFd) -> io::Result<()> {
    let words = [CAPABILITY_VERSION_2_EFFECTIVE, CAP_NET_BIND_SERVICE_AND_RAW, 0, 0, 0];
    let raw: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    xattr::set_fd(fd, b"security.capability", &raw)
}
