//! How much the server's own processor holds requests back.
//!
//! A server that is short of processor reads its sockets late and comes late to everything else, and
//! a client that only knows how long its request took would blame network and disk for that. The
//! share of processor that this process used up, or that a quota denied it, meanwhile, says otherwise.
//! What of it went to work on which no request waits makes a busy server, not a slow one; and so does what
//! such work had of the disk.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use holdall_protocol::RequestTimes;
use holdall_sys::cpu::thread_cpu_seconds;
use holdall_sys::process;
use holdall_sys::thread::ThreadCounts;

/// Counters are read again after so long when a request begins: each reading opens a few files.
const EVERY: Duration = Duration::from_millis(250);
/// A request that takes less is not worth it; nor is another reading so soon after one.
const WORTH: Duration = Duration::from_millis(50);
/// From this share on the processor is what a request waits for.
const SHORT: f64 = 0.5;

/// What was used of the processor and of disks.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Used {
    pub(crate) cpu_seconds: f64,
    /// Read from disks or written to them; 0 where that is not counted.
    pub(crate) disk_bytes: u64,
}

impl Used {
    fn by_process() -> Self {
        Self {
            cpu_seconds: holdall_sys::cpu::process_cpu_seconds(),
            disk_bytes: process::disk_bytes().unwrap_or(0),
        }
    }

    fn by_this_thread(counts: &ThreadCounts) -> Self {
        Self { cpu_seconds: thread_cpu_seconds(), disk_bytes: counts.disk_bytes().unwrap_or(0) }
    }

    /// As another thread sees it: a tick late; `None` if it ended.
    fn by_other_thread(counts: &ThreadCounts) -> Option<Self> {
        let cpu_seconds = counts.cpu_seconds()?;
        Some(Self { cpu_seconds, disk_bytes: counts.disk_bytes().unwrap_or(0) })
    }

    /// Never negative: what is seen late may be less than what was seen before.
    fn since(self, earlier: Self) -> Self {
        Self {
            cpu_seconds: (self.cpu_seconds - earlier.cpu_seconds).max(0.0),
            disk_bytes: self.disk_bytes.saturating_sub(earlier.disk_bytes),
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            cpu_seconds: self.cpu_seconds + other.cpu_seconds,
            disk_bytes: self.disk_bytes + other.disk_bytes,
        }
    }
}

/// What work on which no request waits used: scrubs, prunes, the hourly rounds.
#[derive(Default)]
pub(crate) struct OwnWork {
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    /// Of work that ended.
    ended: Used,
    at_work: HashMap<ThreadId, AtWork>,
}

/// A thread at work, and what it had used before.
struct AtWork {
    counts: ThreadCounts,
    before: Used,
}

impl AtWork {
    fn here() -> Self {
        let counts = ThreadCounts::here();
        Self { before: Used::by_this_thread(&counts), counts }
    }

    fn used(&self) -> Used {
        Used::by_other_thread(&self.counts).unwrap_or(self.before).since(self.before)
    }
}

impl OwnWork {
    /// Does `work` and counts what the calling thread, which does nothing else of the kind, uses meanwhile.
    pub(crate) fn count<T>(&self, work: impl FnOnce() -> T) -> T {
        self.counts().at_work.insert(thread::current().id(), AtWork::here());
        let _ended = Ended(self);
        work()
    }

    pub(crate) fn used(&self) -> Used {
        let counts = self.counts();
        counts.at_work.values().map(AtWork::used).fold(counts.ended, Used::and)
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
        if let Some(ended) = counts.at_work.remove(&thread::current().id()) {
            let used = Used::by_this_thread(&ended.counts).since(ended.before);
            counts.ended = counts.ended.and(used);
        }
    }
}

/// What was used lately.
#[derive(Default)]
pub(crate) struct Pressure {
    /// Scrubs outlive the requests that start them.
    pub(crate) own_work: Arc<OwnWork>,
    last: Mutex<Option<Reading>>,
}

/// What was used until a moment.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    at: Instant,
    all: Used,
    own: Used,
    throttled_seconds: f64,
    cores: f64,
}

impl Reading {
    fn now(own_work: &OwnWork) -> Self {
        Self {
            at: Instant::now(),
            all: Used::by_process(),
            own: own_work.used(),
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
        let used = self.all.since(earlier.all).cpu_seconds / (wall * self.cores);
        let denied = (self.throttled_seconds - earlier.throttled_seconds) / wall;
        used.max(denied).clamp(0.0, 1.0)
    }

    /// The share that own work had in what this process used since `earlier`.
    fn own_share_since(&self, earlier: &Self) -> OwnShare {
        let (all, own) = (self.all.since(earlier.all), self.own.since(earlier.own));
        let share = |own: f64, all: f64| if all > 0.0 { (own / all).clamp(0.0, 1.0) } else { 0.0 };
        OwnShare {
            processor: share(own.cpu_seconds, all.cpu_seconds),
            disk: share(own.disk_bytes as f64, all.disk_bytes as f64),
        }
    }
}

/// The share of own work in what was used, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
struct OwnShare {
    /// Of the processor, by time.
    processor: f64,
    /// Of disks, by bytes.
    disk: f64,
}

impl Pressure {
    /// A request begins: how things are, as of a moment ago.
    pub(crate) fn begin(&self) -> Reading {
        self.reading(EVERY)
    }

    /// How things are, as of no longer ago than `at_most`.
    fn reading(&self, at_most: Duration) -> Reading {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match *last {
            Some(reading) if reading.at.elapsed() < at_most => reading,
            _ => *last.insert(Reading::now(&self.own_work)),
        }
    }

    /// The times of a request that began at `begun` and ends now, in which what was really waited
    /// for, the processor, is not called disk or network, and processor and disk are called queue as far as
    /// own work had them.
    pub(crate) fn reattribute_cpu_wait(
        &self,
        begun: &Reading,
        times: RequestTimes,
    ) -> RequestTimes {
        if begun.at.elapsed() < WORTH {
            return times;
        }
        // Never the one that the request began with, which is older.
        let now = self.reading(WORTH);
        divided(times, now.short_since(begun), now.own_share_since(begun))
    }
}

/// Counts this share of the waiting as processor, if it is large, and what own work had of that processor, and
/// of the disk, as queue.
fn divided(times: RequestTimes, share: f64, own: OwnShare) -> RequestTimes {
    let times = if share < SHORT { times } else { short_of_processor(times, share, own.processor) };
    let of_own_work = times.disk_seconds * own.disk;
    RequestTimes {
        queue_seconds: times.queue_seconds + of_own_work,
        disk_seconds: times.disk_seconds - of_own_work,
        ..times
    }
}

fn short_of_processor(times: RequestTimes, share: f64, own_share: f64) -> RequestTimes {
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
        let all = Used { cpu_seconds, disk_bytes: 0 };
        Reading { at, all, own: Used::default(), throttled_seconds, cores: 2.0 }
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
        let used = |cpu_seconds, disk_bytes| Used { cpu_seconds, disk_bytes };
        let reading = |all, own| Reading { all, own, ..reading(at, 0.0, 0.0) };
        let first = reading(used(10.0, 1000), used(1.0, 0));
        let share = |all, own| reading(all, own).own_share_since(&first);
        let shares = |processor, disk| OwnShare { processor, disk };
        assert_eq!(share(used(14.0, 5000), used(4.0, 1000)), shares(0.75, 0.25));
        assert_eq!(share(used(14.0, 5000), used(1.0, 0)), shares(0.0, 0.0));
        assert_eq!(share(used(14.0, 5000), used(9.0, 9000)), shares(1.0, 1.0));
        assert_eq!(first.own_share_since(&first), shares(0.0, 0.0));
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
            assert!(own_work.used().cpu_seconds < 0.05, "what came before counts");
            work(0.1);
            own_work.used().cpu_seconds
        });
        let ended = own_work.used().cpu_seconds;
        assert!((0.05..0.2).contains(&seen) && ended >= seen, "{seen} {ended}");
        work(0.1);
        assert_eq!(own_work.used().cpu_seconds, ended, "what comes afterwards counts");
        let failing = || {
            own_work.count(|| -> () {
                work(0.1);
                panic!("as wanted")
            })
        };
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(failing)).unwrap_err();
        // Telling where it panicked may take longer than the work.
        let ended_again = own_work.used().cpu_seconds;
        assert!(ended_again >= ended + 0.05, "{ended_again}");
        work(0.1);
        assert_eq!(own_work.used().cpu_seconds, ended_again);
    }

    const TIMES: RequestTimes = RequestTimes {
        receive_seconds: 4.0,
        queue_seconds: 2.0,
        cpu_seconds: 1.0,
        disk_seconds: 2.0,
    };

    const NONE: OwnShare = OwnShare { processor: 0.0, disk: 0.0 };

    #[test]
    fn disk_that_own_work_had_is_queue_whatever_the_processor_did_and_no_time_is_lost() {
        let disk = OwnShare { processor: 0.0, disk: 0.75 };
        let busy = divided(TIMES, 0.1, disk);
        assert_eq!((busy.queue_seconds, busy.disk_seconds), (3.5, 0.5));
        assert_eq!((busy.receive_seconds, busy.cpu_seconds), (4.0, 1.0));
        let both = divided(TIMES, 0.5, OwnShare { processor: 0.5, disk: 0.5 });
        assert_eq!((both.queue_seconds, both.disk_seconds), (1.0 + 2.5 + 0.5, 0.5));
        assert_eq!((both.receive_seconds, both.cpu_seconds), (2.0, 2.5));
    }

    #[test]
    fn waiting_is_processor_as_far_as_that_was_short_and_no_time_is_lost() {
        let short = divided(TIMES, 0.75, NONE);
        assert_eq!((short.cpu_seconds, short.disk_seconds, short.queue_seconds), (7.0, 0.5, 0.5));
        assert_eq!(short.receive_seconds, 1.0);
        assert_eq!(divided(TIMES, 0.49, NONE), TIMES);
    }

    #[test]
    fn processor_that_own_work_had_is_queue_where_it_was_short_and_no_time_is_lost() {
        let processor = OwnShare { processor: 0.5, disk: 0.0 };
        let busy = divided(TIMES, 0.75, processor);
        assert_eq!((busy.cpu_seconds, busy.disk_seconds, busy.queue_seconds), (3.5, 0.5, 4.0));
        assert_eq!(busy.receive_seconds, 1.0);
        assert_eq!(divided(TIMES, 0.49, processor), TIMES);
    }
}
