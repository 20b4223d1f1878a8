//! What goes from stage to stage.

use std::sync::Arc;

use bytes::Bytes;
use crossbeam_channel::Sender;
use holdall_format::ObjectId;
use holdall_sys::{Dir, Stat};
use holdall_tree::{BuiltNode, Entry, PathKey};

use crate::budget::Grant;

/// How a path compares with the parent snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
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

/// One path, as planned.
pub(super) struct Planned {
    pub(super) path: PathKey,
    pub(super) change: Change,
    pub(super) work: Work,
}

/// What is to be done for a path.
pub(super) enum Work {
    /// Nothing: the parent's entry is taken over.
    Keep(Box<Entry>),
    /// Read what is called `name` in `dir`.
    Read { dir: Arc<Dir>, name: Box<[u8]>, stat: Stat },
    /// Read the metadata of an open directory.
    Directory { dir: Arc<Dir>, stat: Stat },
    /// Record what `stat` says: nothing more can be read.
    StatOnly { stat: Stat },
}

/// Some consecutive paths, read together and used in order.
pub(super) struct Job {
    /// Counts jobs from 0.
    pub(super) number: u64,
    pub(super) items: Vec<Planned>,
    pub(super) results: Sender<Vec<Piece>>,
}

/// Bytes to be stored under an id, if the repository does not have them.
pub(super) struct NewChunk {
    pub(super) id: ObjectId,
    pub(super) bytes: Bytes,
    /// Gives back the plain bytes' share of the budget.
    pub(super) _grant: Arc<Grant>,
}

/// A piece of a job's result. An entry comes after everything that it refers to.
pub(super) enum Piece {
    Chunk(NewChunk),
    Node(BuiltNode),
    Entry { path: PathKey, entry: Box<Entry>, change: Change },
}
