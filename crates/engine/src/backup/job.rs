//! What goes from stage to stage.

use std::sync::Arc;

use crossbeam_channel::Sender;
use holdall_sys::{Dir, Stat};
use holdall_tree::{Entry, PathKey};

use crate::storing::{Change, Piece};

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
