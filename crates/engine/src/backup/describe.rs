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

    /// Whether inodes on this mount keep their numbers from one mount to the next.
    pub(super) fn has_stable_inodes(&self, stat: &Stat) -> bool {
        let unstable: [&[u8]; 9] =
            [b"vfat", b"exfat", b"ntfs", b"ntfs3", b"cifs", b"smb3", b"9p", b"fuse", b"overlay"];
        stat.mount_id.and_then(|id| self.0.by_id(id)).is_none_or(|mount| {
            let kind = mount.file_system.split(|&byte| byte == b'.').next().unwrap_or_default();
            !unstable.contains(&kind)
        })
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
