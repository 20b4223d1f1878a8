//! What comes in to be stored.

use std::sync::Arc;

use bytes::Bytes;
use holdall_format::ObjectId;
use holdall_tree::{BuiltNode, Entry, KnownLeaf, PathKey, WholeLeaf};

use crate::item_fate::ItemFate;
use crate::pipeline::budget::Grant;

/// How a path compares with the parent snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    New,
    /// It may differ from this entry; whether it does shows when it was read.
    Maybe(Box<Entry>),
    Unmodified,
}

impl Change {
    /// What it was in the end: a file that was only read again because it was not settled yet, and
    /// is the same, did not change.
    pub(super) fn settle(self, entry: &Entry) -> Settled {
        match self {
            Self::New => Settled::New,
            Self::Unmodified => Settled::Unmodified,
            Self::Maybe(mut before) => {
                before.unsettled = entry.unsettled;
                if *before == *entry { Settled::Unmodified } else { Settled::Changed }
            }
        }
    }
}

/// How an entry compares with the parent snapshot's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settled {
    New,
    Changed,
    Unmodified,
}

impl Settled {
    /// The same, for whoever watches.
    pub(super) fn fate(self) -> ItemFate<'static> {
        match self {
            Self::New => ItemFate::New,
            Self::Changed => ItemFate::Changed,
            Self::Unmodified => ItemFate::Unchanged,
        }
    }
}

/// Bytes to be stored under an id, if the repository does not have them.
pub(crate) struct NewChunk {
    pub(crate) id: ObjectId,
    pub(crate) bytes: Bytes,
    /// Gives back the plain bytes' share of the budget.
    pub(crate) _grant: Arc<Grant>,
}

/// A leaf of the parent snapshot that is taken over whole.
pub(crate) struct AdoptedLeaf {
    pub(crate) leaf: WholeLeaf,
    pub(crate) known: KnownLeaf,
}

/// A piece of a result. An entry comes after everything that it refers to.
pub(crate) enum Piece {
    Chunk(NewChunk),
    Node(BuiltNode),
    Entry { path: PathKey, entry: Box<Entry>, change: Change },
    Leaf(Box<AdoptedLeaf>),
    LeftOut(LeftOut),
}

/// A path that a rule leaves out.
pub(crate) struct LeftOut {
    pub(crate) path: PathKey,
    /// In words.
    pub(crate) rule: String,
    /// How long a file is that is left out for that.
    pub(crate) too_large_bytes: Option<u64>,
}
