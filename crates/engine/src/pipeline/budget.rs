//! A bound on plain bytes in flight that cannot deadlock.
//!
//! Jobs are read in parallel and used in order. If bytes were granted to whoever asks first, jobs
//! far ahead could take everything while the job that is waited for gets nothing. So a reserve
//! beyond the bound is kept for the job whose turn it is: it always gets on, and what it frees lets
//! the others get on. What jobs before it have counts against the reserve too: their results may wait
//! for a slow wire, and the turn goes on meanwhile.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use crate::run::lock;

/// The bound, shared by all threads of a run.
#[derive(Debug)]
pub(crate) struct Budget {
    limit_bytes: usize,
    reserve_bytes: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    used_bytes: usize,
    /// What each job has of it.
    by_job: BTreeMap<u64, usize>,
    turn: u64,
    closed: bool,
}

/// Bytes that were granted; given back when dropped.
#[derive(Debug)]
pub(crate) struct Grant {
    budget: Arc<Budget>,
    job: u64,
    bytes: AtomicUsize,
}

impl Grant {
    /// Gives back what is more than `bytes`: what is kept of it for long must not be more than what is
    /// there, or what waits for more to come keeps that from coming.
    pub(crate) fn shrink_to(&self, bytes: usize) {
        self.give_back(self.bytes.fetch_min(bytes, Ordering::Relaxed).saturating_sub(bytes));
    }

    fn give_back(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let mut state = lock(&self.budget.state);
        state.used_bytes -= bytes;
        if let Some(has) = state.by_job.get_mut(&self.job) {
            *has -= bytes;
            if *has == 0 {
                state.by_job.remove(&self.job);
            }
        }
        drop(state);
        self.budget.changed.notify_all();
    }
}

impl Budget {
    /// A bound of `limit_bytes`, and `reserve_bytes` for the job whose turn it is: at least the
    /// largest grant and all grants of what waits for more to come before it is stored. It is the turn of
    /// job 0.
    pub(crate) fn new(limit_bytes: usize, reserve_bytes: usize) -> Arc<Self> {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Arc::new(Self { limit_bytes, reserve_bytes, state, changed })
    }

    /// Waits until `bytes` fit under the bound, or into the reserve if it is the turn of `job`.
    /// `None` once closed.
    pub(crate) fn grant(self: &Arc<Self>, job: u64, bytes: usize) -> Option<Grant> {
        let mut state = lock(&self.state);
        while !state.closed && !self.fits(&state, job, bytes) {
            state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        if state.closed {
            return None;
        }
        state.used_bytes += bytes;
        *state.by_job.entry(job).or_default() += bytes;
        Some(Grant { budget: Arc::clone(self), job, bytes: AtomicUsize::new(bytes) })
    }

    fn fits(&self, state: &State, job: u64, bytes: usize) -> bool {
        let before_and_now =
            || state.by_job.range(..=state.turn).map(|(_, has)| has).sum::<usize>();
        state.used_bytes + bytes <= self.limit_bytes
            || (state.turn >= job && before_and_now() + bytes <= self.reserve_bytes)
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
        let bytes = *self.bytes.get_mut();
        self.give_back(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_whose_turn_it_is_has_a_reserve_and_others_wait_for_room() {
        let budget = Budget::new(10, 10);
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
    fn the_reserve_is_bounded_too() {
        let budget = Budget::new(10, 5);
        let ahead = budget.grant(1, 10).unwrap();
        let reserved = budget.grant(0, 5).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| budget.grant(0, 1).is_some());
            drop(reserved);
            assert!(waiting.join().unwrap());
        });
        drop(ahead);
    }

    #[test]
    fn what_jobs_before_have_counts_against_the_reserve() {
        let budget = Budget::new(10, 10);
        let fits = |job, bytes| budget.fits(&lock(&budget.state), job, bytes);
        let _ahead = budget.grant(5, 10).unwrap();
        let before: Vec<_> = (0..2).map(|job| (budget.turn(job), budget.grant(job, 5))).collect();
        budget.turn(2);
        assert!(!fits(2, 1), "two jobs before it have all of the reserve");
        drop(before);
        assert!(fits(2, 10) && !fits(2, 11) && !fits(3, 1));
    }

    #[test]
    fn what_is_not_there_after_all_is_given_back() {
        let budget = Budget::new(0, 10);
        let fits = |bytes| budget.fits(&lock(&budget.state), 0, bytes);
        let grant = budget.grant(0, 10).unwrap();
        grant.shrink_to(3);
        assert!(fits(7) && !fits(8));
        grant.shrink_to(5);
        assert!(!fits(8), "it grows no more");
        grant.shrink_to(0);
        assert!(fits(10));
        drop(grant);
        assert!(fits(10) && !fits(11));
    }

    #[test]
    fn closing_ends_all_waiting() {
        let budget = Budget::new(1, 1);
        let held = budget.grant(1, 1);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| budget.grant(2, 1).is_none());
            budget.close();
            assert!(waiting.join().unwrap());
        });
        drop(held);
    }
}
