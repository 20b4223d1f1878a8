//! Which names of a snapshot are names of one file.
//!
//! An entry says which group it belongs to, and not how many names that has nor where the first of them is. So the first
//! question reads the whole tree once.

use std::collections::HashMap;
use std::sync::Arc;

use holdall_format::ObjectId;
use holdall_tree::{Cursor, Entry, EntryKind};

use crate::EngineError;
use crate::blocks::Nodes;
use crate::error::is_damaged;
use crate::restore::in_common;

/// Trees whose groups are kept.
const TREES_KEPT: usize = 4;

/// The groups of one tree.
#[derive(Debug, Default)]
pub struct HardLinks {
    groups: HashMap<[u8; 16], HardLink>,
}

/// A file with several names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HardLink {
    /// The number of its first name.
    pub first: u64,
    /// How many names it has.
    pub names: u32,
}

impl HardLinks {
    /// The file that an entry of this tree is a name of; `None` for one that has one name only.
    pub fn of(&self, entry: &Entry) -> Option<HardLink> {
        may_be_linked(entry).then(|| self.groups.get(&in_common(entry)).copied()).flatten()
    }

    fn count(nodes: &mut Nodes, root: ObjectId) -> Result<Self, EngineError> {
        let (mut cursor, mut links) = (Cursor::new(nodes, root), Self::default());
        loop {
            match cursor.next() {
                Ok(None) => return Ok(links),
                Ok(Some((_, entry))) if may_be_linked(&entry) => {
                    let first = HardLink { first: cursor.position(), names: 0 };
                    let link = links.groups.entry(in_common(&entry)).or_insert(first);
                    link.names = link.names.saturating_add(1);
                }
                Ok(Some(_)) => {}
                Err(error) => match EngineError::from(error) {
                    error if is_damaged(&error) => cursor.skip_unreadable(),
                    error => return Err(error),
                },
            }
        }
    }
}

/// Whether an entry says that it has more names than one.
pub(crate) fn may_be_linked(entry: &Entry) -> bool {
    entry.hardlink.is_some() && entry.kind != EntryKind::Directory
}

/// The groups of the trees that were asked for last.
#[derive(Default)]
pub(crate) struct KnownLinks(Vec<(ObjectId, Arc<HardLinks>)>);

impl KnownLinks {
    /// The groups of a tree, as they are known, or as `nodes` say.
    pub(crate) fn of(
        &mut self,
        nodes: &mut Nodes,
        root: ObjectId,
    ) -> Result<Arc<HardLinks>, EngineError> {
        if let Some((_, links)) = self.0.iter().find(|(of, _)| *of == root) {
            return Ok(Arc::clone(links));
        }
        let links = Arc::new(HardLinks::count(nodes, root)?);
        if self.0.len() == TREES_KEPT {
            self.0.remove(0);
        }
        self.0.push((root, Arc::clone(&links)));
        Ok(links)
    }
}
