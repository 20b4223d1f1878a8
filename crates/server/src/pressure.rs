//! How much the server's own processor holds requests back.
//!
//! A server that is short of processor reads its sockets late and comes late to everything else, and
//! a client that only knows how long its request took would blame network and disk for that. The
//! share of processor that this process used up, or that a quota denied it, meanwhile, says otherwise.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use holdall_protocol::RequestTimes;

/// Counters are read again after so long: each reading opens a few files.
const EVERY: Duration = Duration::from_millis(250);
/// A request that takes less is not worth it.
const WORTH: Duration = Duration::from_millis(50);
/// From this share on the processor is what a request waits for.
const SHORT: f64 = 0.5;

/// What was used of the processor lately.
#[derive(Default)]
pub(crate) struct Pressure {
    last: Mutex<Option<Reading>>,
}

/// What was used of the processor until a moment.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    at: Instant,
    cpu_seconds: f64,
    throttled_seconds: f64,
    cores: f64,
}

impl Reading {
    fn now() -> Self {
        Self {
            at: Instant::now(),
            cpu_seconds: holdall_sys::cpu::process_cpu_seconds(),
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
}

impl Pressure {
    /// A request begins: how things are, as of a moment ago.
    pub(crate) fn begin(&self) -> Reading {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match *last {
            Some(reading) if reading.at.elapsed() < EVERY => reading,
            _ => *last.insert(Reading::now()),
        }
    }

    /// The times of a request that began at `begun` and ends now, in which what was really waited
    /// for, the processor, is not called queue or disk.
    pub(crate) fn honest(begun: &Reading, times: RequestTimes) -> RequestTimes {
        match begun.at.elapsed() < WORTH {
            true => times,
            false => divided(times, Reading::now().short_since(begun)),
        }
    }
}

/// Counts this share of the waiting as processor, if it is large.
fn divided(times: RequestTimes, share: f64) -> RequestTimes {
    if share < SHORT {
        return times;
    }
    let waited = times.receive_seconds + times.queue_seconds + times.disk_seconds;
    RequestTimes {
        receive_seconds: times.receive_seconds * (1.0 - share),
        queue_seconds: times.queue_seconds * (1.0 - share),
        cpu_seconds: times.cpu_seconds + waited * share,
        disk_seconds: times.disk_seconds * (1.0 - share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at: Instant, cpu_seconds: f64, throttled_seconds: f64) -> Reading {
        Reading { at, cpu_seconds, throttled_seconds, cores: 2.0 }
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
    fn waiting_is_processor_as_far_as_that_was_short_and_no_time_is_lost() {
        let times = RequestTimes {
            receive_seconds: 4.0,
            queue_seconds: 2.0,
            cpu_seconds: 1.0,
            disk_seconds: 2.0,
        };
        let short = divided(times, 0.75);
        assert_eq!((short.cpu_seconds, short.disk_seconds, short.queue_seconds), (7.0, 0.5, 0.5));
        assert_eq!(short.receive_seconds, 1.0);
        assert_eq!(divided(times, 0.49), times);
    }
}
