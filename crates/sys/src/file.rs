//! What a file system says of one file, as plain values that mean the same on every system.

/// The kind of a file system entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A Unix socket.
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
}

/// A point in time: seconds since 1970-01-01 UTC and nanoseconds after that second.
///
/// Times before 1970 have negative seconds; the nanoseconds always count forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp {
    /// Whole seconds since 1970-01-01 UTC, rounded towards the past.
    pub secs: i64,
    /// Nanoseconds after `secs`, below 1,000,000,000.
    pub nanos: u32,
}

/// The number of a device that a device file stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DeviceNumber {
    /// Which driver.
    pub major: u32,
    /// Which of the driver's devices.
    pub minor: u32,
}

/// The metadata of one file, of the link itself where it is a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// The kind of file.
    pub kind: FileKind,
    /// The twelve permission bits: set-user-id, set-group-id, sticky and rwx three times.
    pub mode: u32,
    /// The owner's user id.
    pub uid: u32,
    /// The owner's group id.
    pub gid: u32,
    /// Length of the content in bytes; of the target for a symbolic link.
    pub size: u64,
    /// Space taken on the disk, in units of 512 bytes.
    pub blocks: u64,
    /// How many names the file has.
    pub nlink: u64,
    /// The inode's number, unique on its device for as long as the file lives.
    pub inode: u64,
    /// The device that the file lies on: major number in the upper, minor in the lower 32 bits.
    pub device: u64,
    /// The device that a device file stands for; zero for other kinds.
    pub rdev: DeviceNumber,
    /// When the content last changed; anybody who may write can set it.
    pub mtime: Timestamp,
    /// When content or metadata last changed, by the file system's clock.
    pub ctime: Timestamp,
    /// The mount that the file was reached through, for [`mounts`](crate::mounts); `None` before
    /// Linux 5.8.
    pub mount_id: Option<u64>,
}

impl FileKind {
    /// Says whether this is a device file, which alone has a [`DeviceNumber`].
    #[must_use]
    pub fn is_device(self) -> bool {
        matches!(self, Self::CharDevice | Self::BlockDevice)
    }
}

impl Stat {
    /// Says whether this lies on the file system that `folder`, which it is in, lies on, and was reached through the
    /// same mount.
    ///
    /// Of what is no directory the mount alone tells, where the system names mounts: on an overlay, files have the
    /// devices of the layers that they come from.
    #[must_use]
    pub fn is_on_mount_of(&self, folder: &Self) -> bool {
        let is_on_device = self.device == folder.device;
        match (self.mount_id, folder.mount_id) {
            (Some(own), Some(other)) => {
                own == other && (self.kind != FileKind::Dir || is_on_device)
            }
            _ => is_on_device,
        }
    }

    /// Says whether the file takes less room than its length, as a file with holes does.
    ///
    /// Compressed and inline files say so too; [`sparse`](crate::sparse) knows for certain.
    #[must_use]
    pub fn may_have_holes(&self) -> bool {
        self.kind == FileKind::File && self.blocks.saturating_mul(512) < self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_sort_as_they_follow_each_other_across_1970() {
        let before = Timestamp { secs: -1, nanos: 999_999_999 };
        let epoch = Timestamp::default();
        assert!(before < epoch && epoch < Timestamp { secs: 0, nanos: 1 });
    }

    #[test]
    fn only_devices_have_a_device_number() {
        assert!(FileKind::CharDevice.is_device() && FileKind::BlockDevice.is_device());
        assert!(!FileKind::File.is_device() && !FileKind::Socket.is_device());
    }
}
