//! What the repository turned out to have lost: a backup sends it again.
//!
//! A backup asks for nothing that its parent has, since the parent was whole when it was committed.
//! Where damage took something away since, and a repair made it count as missing, the commit says so.
//! Then the run begins anew: entries that need what is lost are read again, and nodes that are lost
//! are built and sent.

use std::collections::HashSet;

use holdall_format::ObjectId;
use holdall_tree::{Content, Entry};

/// Objects that the repository lacks though a parent has them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lost {
    ids: HashSet<ObjectId>,
    /// Whether the parents' trees cannot be read, so that nobody knows what they have.
    pub(crate) parents: bool,
}

impl Lost {
    /// Adds objects; `false` if all of them were known, so that sending them again did not help.
    pub(crate) fn add(&mut self, ids: &[ObjectId]) -> bool {
        let before = self.ids.len();
        self.ids.extend(ids);
        self.ids.len() > before
    }

    /// How many objects.
    pub(crate) fn count(&self) -> u64 {
        self.ids.len() as u64
    }

    /// Whether anything is lost.
    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Whether that object is.
    pub(crate) fn has(&self, id: &ObjectId) -> bool {
        self.ids.contains(id)
    }

    /// Whether an entry may need something that is lost. Which chunks a long list has, only the list
    /// tells, so all of those count.
    pub(crate) fn is_needed_by(&self, entry: &Entry) -> bool {
        let needs = |content: &Content| match content {
            Content::Inline(_) => false,
            Content::Chunks(chunks) => chunks.iter().any(|chunk| self.has(&chunk.id)),
            Content::List { .. } => true,
        };
        !self.is_empty()
            && (needs(&entry.attributes)
                || needs(&entry.content)
                || entry.extents.as_ref().is_some_and(needs))
    }
}
