//! The repository's log position: counts blocks and records as they arrive, and never repeats.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Gives out positions, from 1.
#[derive(Debug)]
pub(crate) struct Log {
    next: AtomicU64,
    /// Whether the next writer goes on behind all that this one gives.
    is_set_aside: AtomicBool,
}

impl Log {
    /// A log that goes on with `next`.
    pub(crate) fn going_on_at(next: u64) -> Self {
        Self { next: AtomicU64::new(next.max(1)), is_set_aside: AtomicBool::new(false) }
    }

    /// Takes a position.
    pub(crate) fn take(&self) -> u64 {
        self.next.fetch_add(1, Ordering::AcqRel)
    }

    /// Goes on with `next`, if it is not that far yet.
    pub(crate) fn at_least(&self, next: u64) {
        self.next.fetch_max(next, Ordering::AcqRel);
    }

    /// The position that is taken next: everything that comes from now on has it or a later one.
    pub(crate) fn next(&self) -> u64 {
        self.next.load(Ordering::Acquire)
    }

    /// Whether it was noted that the next writer goes on behind all positions of this one.
    pub(crate) fn is_set_aside(&self) -> bool {
        self.is_set_aside.load(Ordering::Acquire)
    }

    /// Notes that.
    pub(crate) fn note_set_aside(&self) {
        self.is_set_aside.store(true, Ordering::Release);
    }
}
