//! Which sources could not be read at all. Where that are all of them, the run fails, so that no snapshot of nothing is
//! the newest one.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use holdall_tree::PathKey;

use super::options::Source;
use super::scan::{inner, named};
use crate::EngineError;

/// The sources of a run, and how many of them could not be read.
pub(super) struct Unread {
    named: BTreeSet<PathKey>,
    /// Those within no other.
    outer: BTreeSet<PathKey>,
    unread: AtomicUsize,
}

impl Unread {
    pub(super) fn none_of(sources: &[Source]) -> Self {
        let named = named(sources);
        let outer = named.difference(&inner(sources)).cloned().collect();
        Self { named, outer, unread: AtomicUsize::new(0) }
    }

    /// Whether a path was named as a source.
    pub(super) fn is_named(&self, path: &PathKey) -> bool {
        self.named.contains(path)
    }

    /// Notes that a path could not be read, which may be a source.
    ///
    /// # Errors
    /// [`EngineError::NothingRead`] if it was the last of the sources.
    pub(super) fn note(&self, path: &PathKey) -> Result<(), EngineError> {
        if !self.outer.contains(path) {
            return Ok(());
        }
        let before = self.unread.fetch_add(1, Ordering::Relaxed);
        if before + 1 < self.outer.len() { Ok(()) } else { Err(EngineError::NothingRead) }
    }
}
