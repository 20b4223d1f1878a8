//! How many requests carry blocks at once, and over which path each goes.
//!
//! A put has its turn while its blocks go out, not while the server makes them durable: the wire
//! would rest for as long. And each turn has its path, one of the local addresses, so that two links
//! carry half each, whatever other questions come in between.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Hands out turns.
pub(super) struct Turns {
    /// The paths of the turns that nobody has, the one that rested longest first.
    free: Mutex<VecDeque<usize>>,
    freed: Condvar,
}

impl Turns {
    /// `count` turns, at least one, shared out among `paths` paths.
    pub(super) fn new(count: usize, paths: usize) -> Arc<Self> {
        let free = (0..count.max(1)).map(|turn| turn % paths.max(1)).collect();
        Arc::new(Self { free: Mutex::new(free), freed: Condvar::new() })
    }

    /// Waits for a turn, for so long at most.
    pub(super) fn take(self: &Arc<Self>, patience: Duration) -> Option<Turn> {
        let waited = self.freed.wait_timeout_while(self.lock(), patience, |free| free.is_empty());
        let path = waited.unwrap_or_else(PoisonError::into_inner).0.pop_front()?;
        Some(Turn { turns: Arc::clone(self), path })
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<usize>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to carry blocks, until it is dropped.
pub(super) struct Turn {
    turns: Arc<Turns>,
    /// Which of the local addresses it goes from, counted from 0.
    pub(super) path: usize,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.lock().push_back(self.path);
        self.turns.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    #[test]
    fn turns_are_shared_out_among_the_paths_and_there_are_no_more() {
        let turns = Turns::new(3, 2);
        let taken: Vec<Turn> = (0..3).filter_map(|_| turns.take(NOW)).collect();
        assert_eq!(taken.iter().map(|turn| turn.path).collect::<Vec<_>>(), [0, 1, 0]);
        assert!(turns.take(NOW).is_none());
        drop(taken);
        assert!(turns.take(NOW).is_some());
    }

    #[test]
    fn who_waits_gets_the_turn_that_comes_free() {
        let turns = Turns::new(1, 1);
        let turn = turns.take(NOW).expect("the first");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| turns.take(Duration::from_secs(60)).is_some());
            drop(turn);
            assert!(waiting.join().expect("it ends"));
        });
    }
}
