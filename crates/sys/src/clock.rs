//! The time of day as a parameter, so that a test can move it.

#[cfg(target_os = "linux")]
use crate::host;

/// Tells the time of day. A repository orders by log position; the time is for people, and for
/// sessions to lapse.
pub trait Clock: Send + Sync {
    /// Nanoseconds since 1970 UTC.
    fn now_ns(&self) -> i64;

    /// Nanoseconds since some moment that stays the same while the computer runs, also when the
    /// clock is set. A growing difference to the time of day, or a sudden one, shows that it was set.
    fn running_ns(&self) -> i64 {
        self.now_ns()
    }

    /// Which start of the computer [`Clock::running_ns`] belongs to; `None` if that is not known.
    fn boot_id(&self) -> Option<String> {
        host::boot_id()
    }

    /// How many nanoseconds have passed since the clock showed that time, without those that it was
    /// only set ahead by, as far as that is known.
    fn passed_ns(&self, since_ns: i64) -> i64 {
        self.now_ns().saturating_sub(since_ns)
    }
}

/// The clock of this computer.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ns(&self) -> i64 {
        let now = host::now();
        now.secs.saturating_mul(1_000_000_000).saturating_add(i64::from(now.nanos))
    }

    fn running_ns(&self) -> i64 {
        i64::try_from(host::running().as_nanos()).unwrap_or(i64::MAX)
    }
}
