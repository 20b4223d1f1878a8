//! Inodes: which snapshot something is in, and its number there.
//!
//! ```text
//! | snapshot, 24 bits | number in the order of its tree, 40 bits |
//! ```
//!
//! Snapshot 0 is none: its numbers are those of the folders above the snapshots, and 1 is the folder that is mounted, as FUSE
//! has it.

use fuser::INodeNo;

const NUMBER_BITS: u32 = 40;
/// Most snapshots that are known to one mount.
pub(crate) const SNAPSHOTS_MAX: usize = (1 << (u64::BITS - NUMBER_BITS)) - 1;

/// What an inode stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Inode {
    /// A folder above the snapshots, or a link in one, by its number.
    Above(u64),
    /// An entry of a snapshot, which is known by its place in the list of all, from 0.
    In { snapshot: usize, number: u64 },
}

impl Inode {
    /// What FUSE calls it. A number has room: a tree of 2^40 entries would take a hundred terabytes.
    pub(crate) fn number(self) -> INodeNo {
        INodeNo(match self {
            Self::Above(number) => number,
            Self::In { snapshot, number } => ((snapshot as u64 + 1) << NUMBER_BITS) | number,
        })
    }
}

impl From<INodeNo> for Inode {
    fn from(INodeNo(inode): INodeNo) -> Self {
        let number = inode & ((1 << NUMBER_BITS) - 1);
        match (inode >> NUMBER_BITS).checked_sub(1) {
            None => Self::Above(number),
            Some(snapshot) => Self::In { snapshot: snapshot as usize, number },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inodes_come_back_as_what_they_were_made_of() {
        assert_eq!(Inode::from(INodeNo::ROOT), Inode::Above(1));
        for inode in [
            Inode::Above(7),
            Inode::In { snapshot: 0, number: 0 },
            Inode::In { snapshot: 0, number: (1 << NUMBER_BITS) - 1 },
            Inode::In { snapshot: SNAPSHOTS_MAX - 1, number: 5 },
        ] {
            assert_eq!(Inode::from(inode.number()), inode);
        }
    }
}
