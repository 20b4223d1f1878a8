//! Reads that just failed, so that the kernel's second question does not wait for a lost server as long as the first.
//!
//! The kernel reads ahead, and asks again for the page that a program waits for when that has failed. The program would
//! wait twice as long as the user said. Each failure answers one more question, if that comes at once. The same holds of the list
//! of snapshots, for which a program that opens a file has just waited in vain.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The kernel asks again at once, and a file that was found is read at once. A server that comes back meanwhile is seen late
/// by no more than this.
const ASKED_AGAIN_WITHIN: Duration = Duration::from_millis(20);

/// A part of a file of a snapshot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) snapshot: usize,
    pub(crate) number: u64,
    pub(crate) offset: u64,
    pub(crate) len: usize,
}

impl Part {
    fn begins_in(&self, other: &Self) -> bool {
        let is_within = self.offset.checked_sub(other.offset);
        (self.snapshot, self.number) == (other.snapshot, other.number)
            && is_within.is_some_and(|ahead| ahead < other.len as u64)
    }
}

/// What failed a moment ago.
#[derive(Default)]
pub(crate) struct FailedReads {
    parts: Mutex<Vec<(Part, Instant)>>,
    list: Mutex<Option<Instant>>,
}

impl FailedReads {
    pub(crate) fn keep(&self, part: Part) {
        self.recent().push((part, Instant::now()));
    }

    /// Whether a part begins in one that failed; that is then forgotten.
    pub(crate) fn take(&self, part: &Part) -> bool {
        let mut recent = self.recent();
        let at = recent.iter().position(|(failed, _)| part.begins_in(failed));
        at.map(|at| recent.swap_remove(at)).is_some()
    }

    /// The snapshots could not be listed.
    pub(crate) fn keep_list(&self) {
        *self.list.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Whether they could not be listed a moment ago; that is then forgotten.
    pub(crate) fn take_list(&self) -> bool {
        let failed = self.list.lock().unwrap_or_else(PoisonError::into_inner).take();
        failed.is_some_and(|at| at.elapsed() < ASKED_AGAIN_WITHIN)
    }

    fn recent(&self) -> std::sync::MutexGuard<'_, Vec<(Part, Instant)>> {
        let mut all = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, at)| at.elapsed() < ASKED_AGAIN_WITHIN);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_answers_one_more_question_about_what_it_was_asked() {
        let failed = FailedReads::default();
        let part = Part { snapshot: 1, number: 2, offset: 4096, len: 8192 };
        failed.keep(part);
        for other in [
            Part { snapshot: 0, ..part },
            Part { number: 3, ..part },
            Part { offset: 0, ..part },
            Part { offset: 12288, ..part },
        ] {
            assert!(!failed.take(&other), "{other:?}");
        }
        let page = Part { offset: 8192, len: 4096, ..part };
        assert!(failed.take(&page) && !failed.take(&page));
    }
}
