//! Comparing one entry with its restored self: everything that is not content.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::io;
use std::sync::Mutex;

use holdall_sys::xattr::{self, Xattr};
use holdall_sys::{Dir, FileKind, Name, Stat};

use crate::run::lock;

/// A file's identity on its computer: device and inode.
type Identity = (u64, u64);

/// What an ordinary user cannot restore is not a difference.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rights {
    pub(super) privileged: bool,
}

impl Rights {
    /// Says in which of kind, mode, owner, time and device number two entries differ.
    pub(super) fn differences(self, source: &Stat, restored: &Stat) -> Vec<String> {
        if source.kind != restored.kind {
            return vec![format!("kind: {:?}, restored {:?}", source.kind, restored.kind)];
        }
        let mut found = Vec::new();
        let bits = self.comparable_bits(source, restored);
        if source.kind != FileKind::Symlink && (source.mode ^ restored.mode) & bits != 0 {
            found.push(format!("mode: {:o}, restored {:o}", source.mode, restored.mode));
        }
        let owners = [(source.uid, source.gid), (restored.uid, restored.gid)];
        if self.privileged && owners[0] != owners[1] {
            found.push(format!("owner: {:?}, restored {:?}", owners[0], owners[1]));
        }
        if source.mtime != restored.mtime {
            found.push(format!(
                "modified: {}.{:09}, restored {}.{:09}",
                source.mtime.secs, source.mtime.nanos, restored.mtime.secs, restored.mtime.nanos
            ));
        }
        if source.kind.is_device() && source.rdev != restored.rdev {
            found.push(format!("device: {:?}, restored {:?}", source.rdev, restored.rdev));
        }
        let sized = matches!(source.kind, FileKind::File | FileKind::Symlink);
        if sized && source.size != restored.size {
            found.push(format!("size: {}, restored {}", source.size, restored.size));
        }
        found
    }

    /// The permission bits that must be the same: a restore drops set-user-id and set-group-id
    /// where it may not give the file away.
    fn comparable_bits(self, source: &Stat, restored: &Stat) -> u32 {
        let mut bits = 0o7777;
        if !self.privileged && source.uid != restored.uid {
            bits &= !0o6000;
        }
        if !self.privileged && source.gid != restored.gid {
            bits &= !0o2000;
        }
        bits
    }

    /// Says in which attribute two entries differ.
    pub(super) fn attribute_difference(
        self,
        source: &[Xattr],
        restored: &[Xattr],
    ) -> Option<String> {
        let counts = |attribute: &&Xattr| {
            self.privileged
                || !(attribute.name.starts_with(b"security.")
                    || attribute.name.starts_with(b"trusted."))
        };
        let mut left = source.iter().filter(counts);
        let mut right = restored.iter().filter(counts);
        loop {
            return match (left.next(), right.next()) {
                (None, None) => None,
                (Some(one), Some(other)) if one == other => continue,
                (Some(one), _) | (None, Some(one)) => {
                    Some(format!("attribute {}", one.name.escape_ascii()))
                }
            };
        }
    }

    /// Whether an ordinary user's restore lacks this entry, as it lacks devices.
    pub(super) fn can_be_absent(self, source: &Stat) -> bool {
        !self.privileged && source.kind.is_device()
    }
}

/// Reads an entry's attributes without opening it.
pub(super) fn attributes_at(dir: &Dir, name: Name<'_>) -> io::Result<Vec<Xattr>> {
    xattr::read_at(dir, name)
}

/// Which files are one: hard links must join the same names on both sides.
#[derive(Default)]
pub(super) struct LinkGroups {
    pairs: Mutex<(HashMap<Identity, Identity>, HashMap<Identity, Identity>)>,
}

impl LinkGroups {
    /// Notes that one name leads to these two files; false if an earlier name joined them
    /// otherwise.
    pub(super) fn fits(&self, source: &Stat, restored: &Stat) -> bool {
        if source.nlink < 2 && restored.nlink < 2 {
            return true;
        }
        let one = (source.device, source.inode);
        let other = (restored.device, restored.inode);
        let (forth, back) = &mut *lock(&self.pairs);
        joined(forth, one, other) && joined(back, other, one)
    }
}

fn joined(pairs: &mut HashMap<Identity, Identity>, from: Identity, to: Identity) -> bool {
    match pairs.entry(from) {
        Slot::Occupied(known) => *known.get() == to,
        Slot::Vacant(vacant) => {
            vacant.insert(to);
            true
        }
    }
}
