//! What the system says of a path, in the words of an entry: owners' names, mounts, kinds, times.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use holdall_crypto::RepositoryKeys;
use holdall_sys::{FileKind, Stat, Timestamp};
use holdall_tree::{EntryKind, Time};

use crate::run::lock;

/// Whether it is a group's, and the number.
type OwnerId = (bool, u32);

/// The names of a user and of a group.
pub(super) type OwnerNames = (Arc<[u8]>, Arc<[u8]>);

/// Names of users and groups, each looked up once.
pub(super) struct Owners {
    table: holdall_sys::users::Users,
    /// Whether the tables could be read: else nobody's name is known, and not that nobody has one.
    is_known: bool,
    known: Mutex<HashMap<OwnerId, Arc<[u8]>>>,
}

impl Owners {
    pub(super) fn load() -> Self {
        // Without the tables there are numbers only, which every entry has anyway.
        let table = holdall_sys::users::Users::load();
        let is_known = table.is_ok();
        Self { table: table.unwrap_or_default(), is_known, known: Mutex::default() }
    }

    /// The names that a path's user and group have now; nothing where that is not known.
    pub(super) fn present_names(&self, stat: &Stat) -> Option<OwnerNames> {
        self.is_known.then(|| self.names(stat))
    }

    /// The names of a path's user and group.
    pub(super) fn names(&self, stat: &Stat) -> OwnerNames {
        (self.name(false, stat.uid), self.name(true, stat.gid))
    }

    /// A hash of all names and what they stand for: as long as it is the same, so are those of every path.
    pub(super) fn digest(&self) -> [u8; 32] {
        *blake3::hash(&self.table.canonical()).as_bytes()
    }

    fn name(&self, is_group: bool, id: u32) -> Arc<[u8]> {
        let mut known = lock(&self.known);
        let name = known.entry((is_group, id)).or_insert_with(|| {
            let name = if is_group { self.table.group_name(id) } else { self.table.user_name(id) };
            name.filter(|name| name.len() <= holdall_tree::OWNER_NAME_MAX_BYTES)
                .unwrap_or_default()
                .into()
        });
        Arc::clone(name)
    }
}

/// Where each mount is mounted, for hard-link groups.
pub(super) struct Mounts(holdall_sys::mounts::Mounts);

impl Mounts {
    pub(super) fn read() -> Self {
        // Without the table all groups are told apart by their inodes alone.
        Self(holdall_sys::mounts::Mounts::read().unwrap_or_default())
    }

    /// The group of a path that has more than one name.
    pub(super) fn hardlink_group(&self, keys: &RepositoryKeys, stat: &Stat) -> Option<[u8; 16]> {
        let linked = stat.nlink > 1 && stat.kind != FileKind::Dir;
        linked.then(|| keys.hardlink_group(self.point(stat), stat.inode))
    }

    fn point(&self, stat: &Stat) -> &[u8] {
        stat.mount_id
            .and_then(|id| self.0.by_id(id))
            .map(|mount| &mount.point[..])
            .unwrap_or_default()
    }

    /// What of the paths at which something is mounted comes behind that of a directory, which is absolute and
    /// has no links in it: each begins with a slash.
    pub(super) fn below<'a>(&'a self, directory: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let directory = directory.strip_suffix(b"/").unwrap_or(directory);
        let below = |point: &'a [u8]| point.strip_prefix(directory);
        let points = self.0.iter().filter_map(move |mount| below(&mount.point));
        points.filter(|below| below.len() > 1 && below.starts_with(b"/"))
    }

    /// What of a file on this mount stays as it is until the file changes.
    pub(super) fn lasting(&self, stat: &Stat) -> Lasting {
        let mount = stat.mount_id.and_then(|id| self.0.by_id(id));
        mount.map_or(Lasting::ALL, |mount| Lasting::on(&mount.file_system))
    }
}

/// What a file system keeps, from one mount to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lasting {
    /// Inodes have the same number.
    pub(super) inodes: bool,
    /// There are change times, which tell of all that was done to a file, and which nobody can set.
    pub(super) change_times: bool,
    /// A file that is said to be empty is.
    pub(super) sizes: bool,
}

impl Lasting {
    pub(super) const ALL: Self = Self { inodes: true, change_times: true, sizes: true };

    /// By the type of a file system, with the name behind it that a FUSE has.
    fn on(file_system: &[u8]) -> Self {
        let unstable: [&[u8]; 10] = [
            b"vfat", b"msdos", b"exfat", b"ntfs", b"ntfs3", b"cifs", b"smb3", b"9p", b"fuse",
            b"overlay",
        ];
        // These give the modification time in their place, which moves with a file.
        let without_change_times: [&[u8]; 4] = [b"vfat", b"msdos", b"exfat", b"fuse.sshfs"];
        // Some programs behind a FUSE do not know how long a file is until it is read.
        let without_sizes: [&[u8]; 8] = [
            b"proc",
            b"sysfs",
            b"tracefs",
            b"debugfs",
            b"securityfs",
            b"cgroup",
            b"cgroup2",
            b"fuse",
        ];
        let kind = file_system.split(|&byte| byte == b'.').next().unwrap_or_default();
        Self {
            inodes: !unstable.contains(&kind),
            change_times: !without_change_times.contains(&file_system),
            sizes: !without_sizes.contains(&kind),
        }
    }
}

pub(super) fn time(timestamp: Timestamp) -> Time {
    Time { secs: timestamp.secs, nanos: timestamp.nanos }
}

pub(super) fn kind_of(stat: &Stat) -> EntryKind {
    let (major, minor) = (stat.rdev.major, stat.rdev.minor);
    match stat.kind {
        FileKind::File => EntryKind::File,
        FileKind::Dir => EntryKind::Directory,
        FileKind::Symlink => EntryKind::Symlink,
        FileKind::Fifo => EntryKind::Fifo,
        FileKind::Socket => EntryKind::Socket,
        FileKind::CharDevice => EntryKind::CharDevice { major, minor },
        FileKind::BlockDevice => EntryKind::BlockDevice { major, minor },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_is_known_by_the_type_of_the_file_system() {
        let on = |kind: &str| {
            let lasting = Lasting::on(kind.as_bytes());
            (lasting.inodes, lasting.change_times, lasting.sizes)
        };
        assert_eq!((on("ext4"), on("btrfs")), ((true, true, true), (true, true, true)));
        assert_eq!((on("cifs"), on("fuse.gocryptfs")), ((false, true, true), (false, true, false)));
        assert_eq!((on("proc"), on("fuseblk")), ((true, true, false), (true, true, true)));
        for kind in ["vfat", "msdos", "exfat"] {
            assert_eq!(on(kind), (false, false, true), "{kind}");
        }
        assert_eq!(on("fuse.sshfs"), (false, false, false));
    }
}
