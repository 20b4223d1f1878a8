//! A clock that stands still until it is moved.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use holdall_sys::Timestamp;

const NANOS: i64 = 1_000_000_000;

/// A clock for tests: it shows what it was set to, to the nanosecond, between 1678 and 2262.
#[derive(Debug, Default)]
pub struct FakeClock {
    nanos: AtomicI64,
}

impl FakeClock {
    /// A clock that shows that many seconds since 1970-01-01 UTC.
    #[must_use]
    pub fn at(secs: i64) -> Self {
        Self { nanos: AtomicI64::new(secs.saturating_mul(NANOS)) }
    }

    /// What the clock shows.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let nanos = self.nanos.load(Ordering::SeqCst);
        Timestamp { secs: nanos.div_euclid(NANOS), nanos: nanos.rem_euclid(NANOS) as u32 }
    }

    /// Moves the clock forwards.
    pub fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_nanos()).unwrap_or(i64::MAX);
        self.nanos.fetch_add(by, Ordering::SeqCst);
    }

    /// Sets the clock, backwards too.
    pub fn set(&self, secs: i64) {
        self.nanos.store(secs.saturating_mul(NANOS), Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_only_when_told_to() {
        let clock = FakeClock::at(-1);
        assert_eq!(clock.now(), Timestamp { secs: -1, nanos: 0 });
        clock.advance(Duration::from_nanos(1_500_000_000));
        assert_eq!(clock.now(), Timestamp { secs: 0, nanos: 500_000_000 });
        clock.set(9);
        assert_eq!(clock.now(), Timestamp { secs: 9, nanos: 0 });
    }
}
