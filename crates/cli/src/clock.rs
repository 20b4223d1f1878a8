//! The computer's clock, which everything else is handed.

use holdall_repository::Clock;

/// What the system says that time it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now_ns(&self) -> i64 {
        let now = holdall_sys::host::now();
        now.secs.saturating_mul(1_000_000_000).saturating_add(i64::from(now.nanos))
    }

    fn running_ns(&self) -> i64 {
        let running = holdall_sys::host::running();
        i64::try_from(running.as_nanos()).unwrap_or(i64::MAX)
    }
}
