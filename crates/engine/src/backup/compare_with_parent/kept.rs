//! What is taken over from the parent without a look at the source, between the places that a walk looks at.

use holdall_sys::{FileKind, Stat};
use holdall_tree::{Entry, EntryKind, PathKey};

use super::super::job::{Planned, Work};
use super::super::parents::Kept;
use super::Items;
use crate::EngineError;
use crate::storing::Change;
use crate::walked::FullWalk;

impl Items<'_> {
    /// The inode of the directory that the parent has at `path`.
    pub(super) fn inode_before(&mut self, path: &PathKey) -> Result<Option<u64>, EngineError> {
        self.refuse_all()?;
        let before = self.parents.find(path)?;
        Ok(before.filter(|entry| entry.kind == EntryKind::Directory).map(|entry| entry.inode))
    }

    /// Takes over all that the parent has from one key up to another; says how many paths that are.
    pub(super) fn take_over(
        &mut self,
        from: &[u8],
        until: Option<&[u8]>,
    ) -> Result<u64, EngineError> {
        self.refuse_all()?;
        self.parents.keep_from(from)?;
        let mut items = 0;
        while let Some(kept) = self.parents.next_kept(until)? {
            match kept {
                Kept::Leaf(leaf) => {
                    items += leaf.leaf.items;
                    self.out.adopt(leaf, self.meters)?;
                }
                Kept::Entry(path, entry) => {
                    items += 1;
                    let (change, work) = (Change::Unmodified, Work::Keep(entry));
                    self.out.push(Planned { path, change, work }, self.meters)?;
                }
            }
        }
        Ok(items)
    }
}

/// Refuses a file that got another name: where not all are looked at, the other one keeps an entry that is out
/// of date. A file that had several names before is looked at by all of them.
///
/// # Errors
/// [`EngineError::NeedsFullWalk`].
pub(super) fn check_links(before: Option<&Entry>, stat: &Stat) -> Result<(), EngineError> {
    let is_linked = stat.nlink > 1 && stat.kind != FileKind::Dir;
    let was_linked =
        before.is_some_and(|before| before.hardlink.is_some() && before.inode == stat.inode);
    if is_linked && !was_linked { Err(FullWalk::NewLink.into()) } else { Ok(()) }
}
