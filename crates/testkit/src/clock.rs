//! A clock that stands still until it is moved.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use holdall_sys::Clock;

const SECOND_NS: i64 = 1_000_000_000;

/// A clock for tests. It shows nanoseconds between 1678 and 2262, and can be set beside the time
/// that the computer has been running, which cannot.
#[derive(Debug, Default)]
pub struct FakeClock {
    now_ns: AtomicI64,
    running_ns: AtomicI64,
    boots: AtomicI64,
    /// The one time that it was set ahead as is known: from when to when.
    set_from_ns: AtomicI64,
    set_to_ns: AtomicI64,
}

impl FakeClock {
    /// A clock that shows that many seconds since 1970-01-01 UTC.
    #[must_use]
    pub fn at(secs: i64) -> Self {
        let clock = Self::default();
        clock.set_ns(secs.saturating_mul(SECOND_NS));
        clock
    }

    /// Time passes.
    pub fn advance(&self, by: Duration) {
        self.advance_ns(i64::try_from(by.as_nanos()).unwrap_or(i64::MAX));
    }

    /// Time passes, in nanoseconds.
    pub fn advance_ns(&self, ns: i64) {
        self.jump_ns(ns);
        self.running_ns.fetch_add(ns, Ordering::SeqCst);
    }

    /// Sets the clock, backwards too, to nanoseconds since 1970-01-01 UTC. No time passes.
    pub fn set_ns(&self, ns: i64) {
        self.now_ns.store(ns, Ordering::SeqCst);
    }

    /// Sets the clock by so much, backwards too. No time passes.
    pub fn jump_ns(&self, ns: i64) {
        self.now_ns.fetch_add(ns, Ordering::SeqCst);
    }

    /// Sets the clock ahead by so much, and does not count that as time that has passed
    /// ([`Clock::passed_ns`]). Once.
    pub fn set_ahead_ns(&self, ns: i64) {
        self.set_from_ns.store(self.now_ns(), Ordering::SeqCst);
        self.jump_ns(ns);
        self.set_to_ns.store(self.now_ns(), Ordering::SeqCst);
    }

    /// The computer was off, and shows so much more when it is on again.
    pub fn reboot(&self, ns: i64) {
        self.jump_ns(ns);
        self.running_ns.store(0, Ordering::SeqCst);
        self.boots.fetch_add(1, Ordering::SeqCst);
    }
}

impl Clock for FakeClock {
    fn now_ns(&self) -> i64 {
        self.now_ns.load(Ordering::SeqCst)
    }

    fn running_ns(&self) -> i64 {
        self.running_ns.load(Ordering::SeqCst)
    }

    fn boot_id(&self) -> Option<String> {
        Some(self.boots.load(Ordering::SeqCst).to_string())
    }

    fn passed_ns(&self, since_ns: i64) -> i64 {
        let [from_ns, to_ns] =
            [&self.set_from_ns, &self.set_to_ns].map(|ns| ns.load(Ordering::SeqCst).max(since_ns));
        self.now_ns().saturating_sub(since_ns).saturating_sub(to_ns - from_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_only_when_told_to() {
        let clock = FakeClock::at(-1);
        assert_eq!((clock.now_ns(), clock.running_ns()), (-SECOND_NS, 0));
        clock.advance(Duration::from_nanos(1_500_000_000));
        assert_eq!((clock.now_ns(), clock.running_ns()), (500_000_000, 1_500_000_000));
        clock.set_ns(9);
        assert_eq!((clock.now_ns(), clock.running_ns()), (9, 1_500_000_000));
    }

    #[test]
    fn what_a_clock_was_set_ahead_by_has_not_passed() {
        let clock = FakeClock::at(1);
        clock.advance_ns(5);
        clock.set_ahead_ns(1000);
        clock.advance_ns(7);
        assert_eq!((clock.now_ns(), clock.passed_ns(SECOND_NS)), (SECOND_NS + 1012, 12));
    }

    #[test]
    fn a_reboot_begins_the_running_time_anew() {
        let clock = FakeClock::at(1);
        let before = clock.boot_id();
        clock.advance_ns(5);
        clock.reboot(10);
        assert_eq!((clock.now_ns(), clock.running_ns()), (SECOND_NS + 15, 0));
        assert_ne!(clock.boot_id(), before);
    }
}
