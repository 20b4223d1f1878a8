//! A bound on plain bytes in flight that cannot deadlock.
//!
//! Jobs are read in parallel and used in order. If bytes were granted to whoever asks first, jobs
//! far ahead could take everything while the job that is waited for gets nothing. So grants beyond
//! the bound go to the job whose turn it is, and to it alone: it always gets on, and what it frees
//! lets the others get on.

use std::sync::{Arc, Condvar, Mutex};

use crate::run::lock;

/// The bound, shared by all threads of a run.
#[derive(Debug)]
pub(crate) struct Budget {
    limit_bytes: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    used_bytes: usize,
    turn: u64,
    closed: bool,
}

/// Bytes that were granted; given back when dropped.
#[derive(Debug)]
pub(crate) struct Grant {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Budget {
    /// A bound of `limit_bytes`. It is the turn of job 0.
    pub(crate) fn new(limit_bytes: usize) -> Arc<Self> {
        Arc::new(Self { limit_bytes, state: Mutex::default(), changed: Condvar::new() })
    }

    /// Waits until `bytes` fit under the bound or it is the turn of `job`. `None` once closed.
    pub(crate) fn grant(self: &Arc<Self>, job: u64, bytes: usize) -> Option<Grant> {
        let mut state = lock(&self.state);
        while !state.closed && state.turn < job && state.used_bytes + bytes > self.limit_bytes {
            state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        if state.closed {
            return None;
        }
        state.used_bytes += bytes;
        Some(Grant { budget: Arc::clone(self), bytes })
    }

    /// Says that it is the turn of `job`: its results are being used now.
    pub(crate) fn turn(&self, job: u64) {
        lock(&self.state).turn = job;
        self.changed.notify_all();
    }

    /// Ends all waiting: the run failed or was stopped.
    pub(crate) fn close(&self) {
        lock(&self.state).closed = true;
        self.changed.notify_all();
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        lock(&self.budget.state).used_bytes -= self.bytes;
        self.budget.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_whose_turn_it_is_passes_the_bound_and_others_wait_for_room() {
        let budget = Budget::new(10);
        let ahead = budget.grant(5, 10).unwrap();
        let current = budget.grant(0, 10).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| budget.grant(6, 1).is_some());
            drop(ahead);
            drop(current);
            assert!(waiting.join().unwrap());
        });
    }

    #[test]
    fn closing_ends_all_waiting() {
        let budget = Budget::new(1);
        let held = budget.grant(1, 1);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| budget.grant(2, 1).is_none());
            budget.close();
            assert!(waiting.join().unwrap());
        });
        drop(held);
    }
}
