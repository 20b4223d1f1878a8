//! Metadata through `statx`: nanoseconds, and which mount a file was reached through.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, FileType, Statx, StatxFlags, StatxTimestamp, major, minor};
use rustix::io::Errno;

use crate::{DeviceNumber, FileKind, Stat, Timestamp};

const PERMISSION_BITS: u32 = 0o7777;
const NANOS_MAX: u32 = 999_999_999;

/// Reads the metadata of an open file or directory.
///
/// # Errors
///
/// What the system says.
pub fn of_fd(fd: impl AsFd) -> io::Result<Stat> {
    at(fd.as_fd(), b"", AtFlags::EMPTY_PATH)
}

/// Reads metadata relative to a directory. Network file systems are asked as `stat` would ask
/// them: a stale answer could hide an edit.
pub(crate) fn at(dir: BorrowedFd<'_>, path: &[u8], flags: AtFlags) -> io::Result<Stat> {
    let flags = flags.union(AtFlags::NO_AUTOMOUNT);
    let wanted = StatxFlags::BASIC_STATS.union(StatxFlags::MNT_ID);
    let statx = match rustix::fs::statx(dir, path, flags, wanted) {
        // Where a sandbox hides it.
        Err(Errno::NOSYS | Errno::PERM) => return without_statx(dir, path, flags),
        told => told?,
    };
    let kind = known(FileType::from_raw_mode(statx.stx_mode.into()))?;
    Ok(from_statx(&statx, kind))
}

/// The same from the older call, which tells all but the mount.
#[allow(clippy::useless_conversion, reason = "the numbers are shorter on other processors")]
fn without_statx(dir: BorrowedFd<'_>, path: &[u8], flags: AtFlags) -> io::Result<Stat> {
    let stat = rustix::fs::statat(dir, path, flags)?;
    let number = |device| DeviceNumber { major: major(device), minor: minor(device) };
    let device = number(stat.st_dev);
    Ok(Stat {
        kind: known(FileType::from_raw_mode(stat.st_mode))?,
        mode: stat.st_mode & PERMISSION_BITS,
        uid: stat.st_uid,
        gid: stat.st_gid,
        size: u64::try_from(stat.st_size).unwrap_or_default(),
        blocks: u64::try_from(stat.st_blocks).unwrap_or_default(),
        nlink: u64::from(stat.st_nlink),
        inode: stat.st_ino,
        device: combine(device.major, device.minor),
        rdev: number(stat.st_rdev),
        mtime: seconds_and(stat.st_mtime, stat.st_mtime_nsec),
        ctime: seconds_and(stat.st_ctime, stat.st_ctime_nsec),
        mount_id: None,
    })
}

fn seconds_and(secs: i64, nanos: impl TryInto<u32>) -> Timestamp {
    let nanos = nanos.try_into().unwrap_or(NANOS_MAX).min(NANOS_MAX);
    Timestamp { secs, nanos }
}

fn known(kind: FileType) -> io::Result<FileKind> {
    let unknown = || io::Error::new(io::ErrorKind::InvalidData, "unknown kind of file");
    kind_of(kind).ok_or_else(unknown)
}

fn from_statx(statx: &Statx, kind: FileKind) -> Stat {
    let has_mount_id = statx.stx_mask & StatxFlags::MNT_ID.bits() != 0;
    Stat {
        kind,
        mode: u32::from(statx.stx_mode) & PERMISSION_BITS,
        uid: statx.stx_uid,
        gid: statx.stx_gid,
        size: statx.stx_size,
        blocks: statx.stx_blocks,
        nlink: statx.stx_nlink.into(),
        inode: statx.stx_ino,
        device: combine(statx.stx_dev_major, statx.stx_dev_minor),
        rdev: DeviceNumber { major: statx.stx_rdev_major, minor: statx.stx_rdev_minor },
        mtime: time(&statx.stx_mtime),
        ctime: time(&statx.stx_ctime),
        mount_id: has_mount_id.then_some(statx.stx_mnt_id),
    }
}

/// Puts a device's two numbers into the one of [`Stat::device`].
pub(crate) fn combine(major: u32, minor: u32) -> u64 {
    u64::from(major) << 32 | u64::from(minor)
}

/// Broken file systems give nanoseconds of a second or more, which no entry can have.
fn time(time: &StatxTimestamp) -> Timestamp {
    Timestamp { secs: time.tv_sec, nanos: time.tv_nsec.min(NANOS_MAX) }
}

/// Translates a kind; `None` if the file system did not say or it is none that we know.
pub(crate) fn kind_of(kind: FileType) -> Option<FileKind> {
    match kind {
        FileType::RegularFile => Some(FileKind::File),
        FileType::Directory => Some(FileKind::Dir),
        FileType::Symlink => Some(FileKind::Symlink),
        FileType::Fifo => Some(FileKind::Fifo),
        FileType::Socket => Some(FileKind::Socket),
        FileType::CharacterDevice => Some(FileKind::CharDevice),
        FileType::BlockDevice => Some(FileKind::BlockDevice),
        FileType::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_statx_all_is_told_but_the_mount() {
        let here = rustix::fs::CWD;
        for path in [".", "/dev/null", "/proc/self/exe", "Cargo.toml"] {
            let told = at(here, path.as_bytes(), AtFlags::SYMLINK_NOFOLLOW).unwrap();
            let told = Stat { mount_id: None, ..told };
            let older = without_statx(here, path.as_bytes(), AtFlags::SYMLINK_NOFOLLOW).unwrap();
            assert_eq!(older, told, "{path}");
        }
    }

    #[test]
    fn nanoseconds_that_a_broken_file_system_gives_are_less_than_a_second() {
        let here = rustix::fs::CWD;
        let here = rustix::fs::statx(here, ".", AtFlags::empty(), StatxFlags::BASIC_STATS).unwrap();
        let mut read = here.stx_mtime;
        let mut at = |nanos| {
            (read.tv_sec, read.tv_nsec) = (-5, nanos);
            time(&read)
        };
        assert_eq!(at(7), Timestamp { secs: -5, nanos: 7 });
        assert_eq!(at(u32::MAX), Timestamp { secs: -5, nanos: 999_999_999 });
    }
}
