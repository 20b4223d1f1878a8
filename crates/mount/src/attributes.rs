//! Entries as `stat` shows them.

use std::time::{Duration, SystemTime};

use fuser::{FileAttr, FileType};
use holdall_engine::{Entry, EntryKind, HardLink, Time};

use crate::inode::Inode;

/// What the kernel asks for and gives at once, told to programs.
const BLOCK_BYTES: u32 = 4096;
/// What `stat` counts blocks in.
const SECTOR_BYTES: u64 = 512;

/// Which kind of file an entry is.
pub(crate) fn kind_of(kind: EntryKind) -> FileType {
    match kind {
        EntryKind::File => FileType::RegularFile,
        EntryKind::Directory => FileType::Directory,
        EntryKind::Symlink => FileType::Symlink,
        EntryKind::Fifo => FileType::NamedPipe,
        EntryKind::Socket => FileType::Socket,
        EntryKind::CharDevice { .. } => FileType::CharDevice,
        EntryKind::BlockDevice { .. } => FileType::BlockDevice,
    }
}

/// An entry of a snapshot, which may be one of several names of a file.
pub(crate) fn of_entry(inode: Inode, entry: &Entry, link: Option<HardLink>) -> FileAttr {
    let mtime = system_time(entry.mtime);
    let size = match entry.kind {
        EntryKind::Directory => 0,
        // Programs take it for the length of the target, which in a snapshot is the content.
        EntryKind::Symlink => entry.size.max(entry.content.len_bytes()),
        _ => entry.size,
    };
    FileAttr {
        ino: inode.number(),
        size,
        // Holes are no part of the content.
        blocks: entry.content.len_bytes().div_ceil(SECTOR_BYTES),
        atime: mtime,
        mtime,
        ctime: system_time(entry.ctime),
        crtime: mtime,
        kind: kind_of(entry.kind),
        perm: (entry.mode & 0o7777) as u16,
        // A directory with one name says nothing about how many are in it.
        nlink: link.map_or(1, |link| link.names),
        uid: entry.uid,
        gid: entry.gid,
        rdev: device_of(entry.kind),
        blksize: BLOCK_BYTES,
        flags: 0,
    }
}

/// A folder above the snapshots, or a link in one: of the user who mounts, and as old as its newest snapshot.
pub(crate) fn of_made(inode: Inode, link_bytes: Option<usize>, taken_ns: i64) -> FileAttr {
    const NS: i64 = 1_000_000_000;
    let nanos = u32::try_from(taken_ns.rem_euclid(NS)).unwrap_or_default();
    let time = Time { secs: taken_ns.div_euclid(NS), nanos };
    let kind = if link_bytes.is_some() { EntryKind::Symlink } else { EntryKind::Directory };
    let entry = Entry {
        mode: if link_bytes.is_some() { 0o777 } else { 0o555 },
        size: link_bytes.unwrap_or_default() as u64,
        uid: rustix::process::getuid().as_raw(),
        gid: rustix::process::getgid().as_raw(),
        mtime: time,
        ctime: time,
        ..Entry::empty(kind)
    };
    of_entry(inode, &entry, None)
}

/// A time, or 1970 for one that the system cannot tell.
fn system_time(Time { secs, nanos }: Time) -> SystemTime {
    let whole = Duration::from_secs(secs.unsigned_abs());
    let start = match secs >= 0 {
        true => SystemTime::UNIX_EPOCH.checked_add(whole),
        false => SystemTime::UNIX_EPOCH.checked_sub(whole),
    };
    let time = start.and_then(|start| start.checked_add(Duration::new(0, nanos)));
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}

/// The numbers of a device as the kernel packs them.
fn device_of(kind: EntryKind) -> u32 {
    match kind {
        EntryKind::CharDevice { major, minor } | EntryKind::BlockDevice { major, minor } => {
            (minor & 0xff) | ((major & 0xfff) << 8) | ((minor & !0xff) << 12)
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_and_at_the_ends_of_time_are_told() {
        let at = |secs, nanos| system_time(Time { secs, nanos });
        assert_eq!(at(-1, 250_000_000), SystemTime::UNIX_EPOCH - Duration::from_millis(750));
        assert_eq!(at(5, 1), SystemTime::UNIX_EPOCH + Duration::new(5, 1));
        let most = Duration::new(i64::MAX as u64, 999_999_999);
        assert_eq!(at(i64::MAX, 999_999_999), SystemTime::UNIX_EPOCH + most);
        let least = SystemTime::UNIX_EPOCH - Duration::from_secs(1 << 63);
        assert_eq!(at(i64::MIN, 0), least);
    }

    #[test]
    fn numbers_of_devices_are_packed_as_the_kernel_does() {
        assert_eq!(device_of(EntryKind::CharDevice { major: 1, minor: 3 }), 0x103);
        assert_eq!(device_of(EntryKind::BlockDevice { major: 259, minor: 0x1ff }), 0x0011_03ff);
    }
}
