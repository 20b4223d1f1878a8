//! How hard to compress: as hard as the stages behind leave time for.
//!
//! A sealing thread that waits to hand a block on has time to spare, and what it spends on making
//! blocks smaller comes back as shorter waiting: a slow link gets small data. One that never waits is
//! what the others wait for, so it compresses as fast as it can, and a fast link is not throttled.
//! Nothing is guessed of the link or the processor; both may change while a run goes on.
//!
//! Time to spare is not processor to spare: where all cores are busy, with the other stages or with
//! a server on the same computer, whoever waits here waits for those, and harder compression would
//! only take from them what they need to come to an end. So only what cores were idle is spent.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use holdall_sys::cpu::{CoreTimes, available_cores, process_cpu_seconds};

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
#[derive(Debug)]
struct Spent {
    working: Duration,
    waiting: Duration,
    since: Processor,
}

impl Spent {
    fn begin() -> Self {
        Self { working: Duration::ZERO, waiting: Duration::ZERO, since: Processor::now() }
    }
}

impl Level {
    pub(super) fn new() -> Arc<Self> {
        let spent = Mutex::new(Spent::begin());
        Arc::new(Self { rung: AtomicUsize::new(FIRST_RUNG), spent })
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
            let spent = std::mem::replace(&mut *spent, Spent::begin());
            let (working, waiting) = (spent.working.as_secs_f64(), spent.waiting.as_secs_f64());
            // Waiting by which no core became idle is waiting for a core.
            let idle = spent.since.idle_seconds_until(&Processor::now(), available_cores());
            let to_spare = waiting.min(idle);
            let rung = chosen(self.rung.load(Ordering::Relaxed), working, to_spare);
            self.rung.store(rung, Ordering::Relaxed);
        }
    }
}

/// The highest rung that would have fitted into so many seconds of working and some to spare.
fn chosen(rung: usize, working: f64, to_spare: f64) -> usize {
    let cost = LADDER.get(rung).map_or(1.0, |(_, cost)| *cost);
    let working = working.max(1e-6);
    let room = (working + to_spare) / working * USABLE;
    LADDER.iter().rposition(|(_, other)| *other <= cost * room).unwrap_or(0)
}

/// How busy the cores were until a moment.
#[derive(Debug)]
struct Processor {
    at: Instant,
    own_seconds: f64,
    computer: Option<CoreTimes>,
}

impl Processor {
    fn now() -> Self {
        Self { at: Instant::now(), own_seconds: process_cpu_seconds(), computer: CoreTimes::now() }
    }

    /// For how long cores were idle until `now` that this process could have used, which may use
    /// `cores` of them: added up over cores.
    fn idle_seconds_until(&self, now: &Self, cores: f64) -> f64 {
        let wall = (now.at - self.at).as_secs_f64();
        let of_own_share = (cores * wall - (now.own_seconds - self.own_seconds)).max(0.0);
        match (now.computer, self.computer) {
            (Some(now), Some(then)) => {
                of_own_share.min(now.idle_share_since(&then) * now.cores() as f64 * wall)
            }
            _ => of_own_share,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The level after so many milliseconds each of working and of waiting with idle cores.
    fn after(spent: &[(u32, u32)]) -> i32 {
        let seconds = |milliseconds| f64::from(milliseconds) / 1e3;
        let next =
            |rung, (working, idle): &(u32, u32)| chosen(rung, seconds(*working), seconds(*idle));
        LEVELS[spent.iter().fold(FIRST_RUNG, next)]
    }

    #[test]
    fn who_never_waits_compresses_faster_and_who_waits_much_harder() {
        assert_eq!(after(&[]), 3);
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

    #[test]
    fn the_level_is_chosen_after_a_while() {
        let level = Level::new();
        level.note(Duration::from_millis(199), Duration::ZERO);
        assert_eq!(level.now(), 3, "too early to tell");
        level.note(Duration::from_millis(1), Duration::ZERO);
        assert_eq!(level.now(), 2);
    }

    #[test]
    fn what_a_run_uses_of_the_cores_that_it_may_use_is_not_idle() {
        let at = Instant::now();
        let then = Processor { at, own_seconds: 5.0, computer: None };
        let later = |own_seconds| Processor {
            at: at + Duration::from_secs(2),
            own_seconds,
            computer: None,
        };
        assert!((then.idle_seconds_until(&later(5.5), 2.0) - 3.5).abs() < 1e-9);
        assert!(then.idle_seconds_until(&later(6.0), 0.5).abs() < 1e-9, "a share of a core");
        assert_eq!(then.idle_seconds_until(&later(9.1), 2.0), 0.0);
    }

    #[test]
    fn cores_that_all_of_the_computer_used_are_not_idle() {
        let computer = Some(CoreTimes::now().unwrap());
        let at = Instant::now();
        let then = Processor { at, own_seconds: 0.0, computer };
        let now = Processor { at: at + Duration::from_secs(1), own_seconds: 0.0, computer };
        assert_eq!(then.idle_seconds_until(&now, 8.0), 0.0, "the counters did not move");
    }
}
