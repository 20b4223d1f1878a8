//! Setting owner, mode and times, by descriptor or by name in a directory, never through a link.
//!
//! The order matters to whoever restores: changing the owner clears set-user-id bits and file
//! capabilities, writing changes times, and a mode may end one's own right to go on. So: content,
//! owner, extended attributes, times, mode.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid};
use rustix::io::Errno;

use super::proc_path;
use crate::{Name, Timestamp};

/// Sets the owner of an open file or directory; `None` leaves the user or the group as it is.
///
/// # Errors
///
/// `EPERM` where only root may, `InvalidInput` for the id 4,294,967,295, which means "leave it" to
/// the system; else what the system says.
pub fn set_owner(fd: impl AsFd, uid: Option<u32>, gid: Option<u32>) -> io::Result<()> {
    let (uid, gid) = owner(uid, gid)?;
    Ok(rustix::fs::fchown(fd, uid, gid)?)
}

/// Sets the owner of `name` in `dir`, of the link itself if it is one; `None` leaves it.
///
/// # Errors
///
/// As for [`set_owner`].
pub fn set_owner_at(
    dir: impl AsFd,
    name: Name<'_>,
    uid: Option<u32>,
    gid: Option<u32>,
) -> io::Result<()> {
    let (uid, gid) = owner(uid, gid)?;
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    Ok(rustix::fs::chownat(dir, name.as_bytes(), uid, gid, flags)?)
}

/// Sets the twelve permission bits of an open file or directory; higher bits are ignored.
///
/// # Errors
///
/// `EPERM` for another's file; else what the system says.
pub fn set_mode(fd: impl AsFd, mode: u32) -> io::Result<()> {
    Ok(rustix::fs::fchmod(fd, bits(mode))?)
}

/// Sets the twelve permission bits of `name` in `dir`, which must not be a link: links have none.
///
/// # Errors
///
/// `EOPNOTSUPP` for a link, `ENOENT` where `/proc` is not mounted; else as for [`set_mode`].
pub fn set_mode_at(dir: impl AsFd, name: Name<'_>, mode: u32) -> io::Result<()> {
    let flags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
    let fd = rustix::fs::openat(dir, name.as_bytes(), flags, Mode::empty())?;
    if rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode).is_symlink() {
        return Err(Errno::OPNOTSUPP.into());
    }
    Ok(rustix::fs::chmod(proc_path::of_fd(fd.as_fd()), bits(mode))?)
}

/// Sets the modification time of an open file or directory and leaves the access time alone.
///
/// File systems cut times to what they can hold: tell by reading it back.
///
/// # Errors
///
/// `EPERM` for another's file, `InvalidInput` for nanoseconds past the second; else what the
/// system says.
pub fn set_mtime(fd: impl AsFd, mtime: Timestamp) -> io::Result<()> {
    Ok(rustix::fs::futimens(fd, &times(mtime)?)?)
}

/// Sets the modification time of `name` in `dir`, of the link itself if it is one.
///
/// # Errors
///
/// As for [`set_mtime`].
pub fn set_mtime_at(dir: impl AsFd, name: Name<'_>, mtime: Timestamp) -> io::Result<()> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    Ok(rustix::fs::utimensat(dir, name.as_bytes(), &times(mtime)?, flags)?)
}

fn owner(uid: Option<u32>, gid: Option<u32>) -> io::Result<(Option<Uid>, Option<Gid>)> {
    if uid == Some(u32::MAX) || gid == Some(u32::MAX) {
        return Err(Errno::INVAL.into());
    }
    Ok((uid.map(Uid::from_raw), gid.map(Gid::from_raw)))
}

fn bits(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & 0o7777)
}

fn times(mtime: Timestamp) -> io::Result<Timestamps> {
    if mtime.nanos >= 1_000_000_000 {
        return Err(Errno::INVAL.into());
    }
    Ok(Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: mtime.secs, tv_nsec: mtime.nanos.into() },
    })
}
