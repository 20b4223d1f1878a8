//! How much the server's own processor holds requests back.
//!
//! A server that is short of processor reads its sockets late and comes late to everything else, and
//! a client that only knows how long its request took would blame network and disk for that. The
//! share of processor that this process used up, or that a quota denied it, meanwhile, says otherwise.
//! What of it went to work on which no request waits makes a busy server, not a slow one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use holdall_protocol::RequestTimes;
use holdall_sys::cpu::{ThreadClock, thread_cpu_seconds};

/// Counters are read again after so long: each reading opens a few files.
const EVERY: Duration = Duration::from_millis(250);
/// A request that takes less is not worth it.
const WORTH: Duration = Duration::from_millis(50);
/// From this share on the processor is what a request waits for.
const SHORT: f64 = 0.5;

/// What work on which no request waits used of the processor: scrubs, prunes, the hourly rounds.
#[derive(Default)]
pub(crate) struct OwnWork {
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    /// Of work that ended.
    ended_seconds: f64,
    at_work: HashMap<ThreadId, AtWork>,
}

/// A thread at work, and what it had used of the processor before.
struct AtWork {
    clock: ThreadClock,
    before_seconds: f64,
}

impl AtWork {
    fn here() -> Self {
        Self { clock: ThreadClock::here(), before_seconds: thread_cpu_seconds() }
    }

    /// As another thread sees it: a tick late.
    fn used_seconds(&self) -> f64 {
        self.clock.seconds().map_or(0.0, |seconds| (seconds - self.before_seconds).max(0.0))
    }
}

impl OwnWork {
    /// Does `work` and counts what the calling thread, which does nothing else of the kind, uses meanwhile.
    pub(crate) fn count<T>(&self, work: impl FnOnce() -> T) -> T {
        self.counts().at_work.insert(thread::current().id(), AtWork::here());
        let _ended = Ended(self);
        work()
    }

    pub(crate) fn seconds(&self) -> f64 {
        let counts = self.counts();
        counts.ended_seconds + counts.at_work.values().map(AtWork::used_seconds).sum::<f64>()
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps what the calling thread used when its work ends, however it ends.
struct Ended<'a>(&'a OwnWork);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        let mut counts = self.0.counts();
        let ended = counts.at_work.remove(&thread::current().id());
        counts.ended_seconds +=
            ended.map_or(0.0, |ended| thread_cpu_seconds() - ended.before_seconds);
    }
}

/// What was used of the processor lately.
#[derive(Default)]
pub(crate) struct Pressure {
    /// Scrubs outlive the requests that start them.
    pub(crate) own_work: Arc<OwnWork>,
    last: Mutex<Option<Reading>>,
}

/// What was used of the processor until a moment.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    at: Instant,
    cpu_seconds: f64,
    own_seconds: f64,
    throttled_seconds: f64,
    cores: f64,
}

impl Reading {
    fn now(own_work: &OwnWork) -> Self {
        Self {
            at: Instant::now(),
            cpu_seconds: holdall_sys::cpu::process_cpu_seconds(),
            own_seconds: own_work.seconds(),
            throttled_seconds: holdall_sys::cpu::throttled_seconds().unwrap_or(0.0),
            cores: holdall_sys::cpu::available_cores(),
        }
    }

    /// What this process was short of since `earlier`, as a share of the time.
    fn short_since(&self, earlier: &Self) -> f64 {
        let wall = (self.at - earlier.at).as_secs_f64();
        if wall <= 0.0 {
            return 0.0;
        }
        let used = (self.cpu_seconds - earlier.cpu_seconds) / (wall * self.cores);
        let denied = (self.throttled_seconds - earlier.throttled_seconds) / wall;
        used.max(denied).clamp(0.0, 1.0)
    }

    /// The share that own work had in what this process used of the processor since `earlier`.
    fn own_share_since(&self, earlier: &Self) -> f64 {
        let all = self.cpu_seconds - earlier.cpu_seconds;
        if all <= 0.0 {
            return 0.0;
        }
        ((self.own_seconds - earlier.own_seconds) / all).clamp(0.0, 1.0)
    }
}

impl Pressure {
    /// A request begins: how things are, as of a moment ago.
    pub(crate) fn begin(&self) -> Reading {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match *last {
            Some(reading) if reading.at.elapsed() < EVERY => reading,
            _ => *last.insert(Reading::now(&self.own_work)),
        }
    }

    /// The times of a request that began at `begun` and ends now, in which what was really waited
    /// for, the processor, is not called disk or network, and is called queue as far as own work had it.
    pub(crate) fn honest(&self, begun: &Reading, times: RequestTimes) -> RequestTimes {
        if begun.at.elapsed() < WORTH {
            return times;
        }
        let now = Reading::now(&self.own_work);
        divided(times, now.short_since(begun), now.own_share_since(begun))
    }
}

/// Counts this share of the waiting as processor, if it is large, and of that processor the share that
/// was own work's as queue.
fn divided(times: RequestTimes, share: f64, own_share: f64) -> RequestTimes {
    if share < SHORT {
        return times;
    }
    let waited = times.receive_seconds + times.queue_seconds + times.disk_seconds;
    let cpu_seconds = times.cpu_seconds + waited * share;
    RequestTimes {
        receive_seconds: times.receive_seconds * (1.0 - share),
        queue_seconds: times.queue_seconds * (1.0 - share) + cpu_seconds * own_share,
        cpu_seconds: cpu_seconds * (1.0 - own_share),
        disk_seconds: times.disk_seconds * (1.0 - share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at: Instant, cpu_seconds: f64, throttled_seconds: f64) -> Reading {
        Reading { at, cpu_seconds, own_seconds: 0.0, throttled_seconds, cores: 2.0 }
    }

    #[test]
    fn cores_that_are_used_up_and_a_quota_that_denies_them_are_both_short() {
        let begun = Instant::now();
        let first = reading(begun, 10.0, 5.0);
        let later = |cpu, throttled| reading(begun + Duration::from_secs(2), cpu, throttled);
        assert_eq!(later(14.0, 5.0).short_since(&first), 1.0);
        assert!((later(10.2, 6.8).short_since(&first) - 0.9).abs() < 1e-9);
        assert_eq!(later(11.0, 5.0).short_since(&first), 0.25);
        assert_eq!(first.short_since(&first), 0.0);
    }

    #[test]
    fn own_work_has_its_share_of_what_was_used_even_if_it_was_counted_late() {
        let at = Instant::now();
        let first = Reading { own_seconds: 1.0, ..reading(at, 10.0, 0.0) };
        let later = |cpu, own_seconds| Reading { own_seconds, ..reading(at, cpu, 0.0) };
        assert_eq!(later(14.0, 4.0).own_share_since(&first), 0.75);
        assert_eq!(later(14.0, 1.0).own_share_since(&first), 0.0);
        assert_eq!(later(14.0, 9.0).own_share_since(&first), 1.0);
        assert_eq!(first.own_share_since(&first), 0.0);
    }

    #[test]
    fn own_work_is_what_its_thread_used_since_it_began_even_if_it_panicked() {
        let work = |seconds: f64| {
            let begun = thread_cpu_seconds();
            while thread_cpu_seconds() < begun + seconds {}
        };
        work(0.1);
        let own_work = OwnWork::default();
        let seen = own_work.count(|| {
            assert!(own_work.seconds() < 0.05, "what came before counts");
            work(0.1);
            own_work.seconds()
        });
        let ended = own_work.seconds();
        assert!((0.05..0.2).contains(&seen) && ended >= seen, "{seen} {ended}");
        work(0.1);
        assert_eq!(own_work.seconds(), ended, "what comes afterwards counts");
        let failing = || {
            own_work.count(|| -> () {
                work(0.1);
                panic!("as wanted")
            })
        };
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(failing)).unwrap_err();
        // Telling where it panicked may take longer than the work.
        let ended_again = own_work.seconds();
        assert!(ended_again >= ended + 0.05, "{ended_again}");
        work(0.1);
        assert_eq!(own_work.seconds(), ended_again);
    }

    const TIMES: RequestTimes = RequestTimes {
        receive_seconds: 4.0,
        queue_seconds: 2.0,
        cpu_seconds: 1.0,
        disk_seconds: 2.0,
    };

    #[test]
    fn waiting_is_processor_as_far_as_that_was_short_and_no_time_is_lost() {
        let short = divided(TIMES, 0.75, 0.0);
        assert_eq!((short.cpu_seconds, short.disk_seconds, short.queue_seconds), (7.0, 0.5, 0.5));
        assert_eq!(short.receive_seconds, 1.0);
        assert_eq!(divided(TIMES, 0.49, 0.0), TIMES);
    }

    #[test]
    fn processor_that_own_work_had_is_queue_where_it_was_short_and_no_time_is_lost() {
        let busy = divided(TIMES, 0.75, 0.5);
        assert_eq!((busy.cpu_seconds, busy.disk_seconds, busy.queue_seconds), (3.5, 0.5, 4.0));
        assert_eq!(busy.receive_seconds, 1.0);
        assert_eq!(divided(TIMES, 0.49, 0.5), TIMES);
    }
}
