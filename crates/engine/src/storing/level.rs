//! How hard to compress: as hard as the stages behind leave time for.
//!
//! A sealing thread that waits to hand a block on has time to spare, and what it spends on making
//! blocks smaller comes back as shorter waiting: a slow link gets small data. One that never waits is
//! what the others wait for, so it compresses as fast as it can, and a fast link is not throttled.
//! Nothing is guessed of the link or the processor; both may change while a run goes on.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::run::lock;

/// Levels of zstd that are worth choosing, and what each costs beside the first: measured on blocks
/// of 1 MiB of text. Above 9 a block costs several times as much and becomes 1 % smaller.
const LADDER: [(i32, f64); 5] = [(1, 1.0), (2, 1.3), (3, 1.8), (6, 4.0), (9, 6.6)];
/// All of them, from the fastest to the hardest.
pub(crate) const LEVELS: [i32; LADDER.len()] = {
    let [(a, _), (b, _), (c, _), (d, _), (e, _)] = LADDER;
    [a, b, c, d, e]
};
/// Where it begins: a small backup is over before anything is known, and is to be small then.
const FIRST_RUNG: usize = 2;
/// Sealing threads' time after which the level is chosen anew.
const CHOOSE_AFTER: Duration = Duration::from_millis(200);
/// The share of their time that sealing threads may be made to use.
const USABLE: f64 = 0.9;

/// The level that all sealing threads of a run compress at.
#[derive(Debug)]
pub(super) struct Level {
    rung: AtomicUsize,
    spent: Mutex<Spent>,
}

/// What sealing threads did since the level was chosen.
#[derive(Debug, Default)]
struct Spent {
    working: Duration,
    waiting: Duration,
}

impl Level {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { rung: AtomicUsize::new(FIRST_RUNG), spent: Mutex::default() })
    }

    /// The level of zstd for the next block.
    pub(super) fn now(&self) -> i32 {
        LADDER.get(self.rung.load(Ordering::Relaxed)).map_or(1, |(level, _)| *level)
    }

    /// Notes how long a block took to seal, and how long it waited for room behind.
    pub(super) fn note(&self, working: Duration, waiting: Duration) {
        let mut spent = lock(&self.spent);
        spent.working += working;
        spent.waiting += waiting;
        if spent.working + spent.waiting >= CHOOSE_AFTER {
            let spent = std::mem::take(&mut *spent);
            self.rung.store(chosen(self.rung.load(Ordering::Relaxed), &spent), Ordering::Relaxed);
        }
    }
}

/// The highest rung that would have fitted into the time that was there.
fn chosen(rung: usize, spent: &Spent) -> usize {
    let cost = LADDER.get(rung).map_or(1.0, |(_, cost)| *cost);
    let working = spent.working.as_secs_f64().max(1e-6);
    let room = (working + spent.waiting.as_secs_f64()) / working * USABLE;
    LADDER.iter().rposition(|(_, other)| *other <= cost * room).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(notes: &[(u64, u64)]) -> i32 {
        let level = Level::new();
        for (working, waiting) in notes {
            level.note(Duration::from_millis(*working), Duration::from_millis(*waiting));
        }
        level.now()
    }

    #[test]
    fn who_never_waits_compresses_faster_and_who_waits_much_harder() {
        assert_eq!(after(&[]), 3);
        assert_eq!(after(&[(199, 0)]), 3, "too early to tell");
        assert_eq!(after(&[(200, 0)]), 2);
        assert_eq!(after(&[(200, 0), (200, 0), (200, 0)]), 1);
        assert_eq!(after(&[(10, 1000)]), 9);
        assert_eq!(after(&[(10, 1000), (200, 0)]), 6);
    }

    #[test]
    fn a_balance_is_kept() {
        // As much waiting as nine tenths of the time leave.
        assert_eq!(after(&[(180, 30), (180, 30), (180, 30)]), 3);
    }
}
