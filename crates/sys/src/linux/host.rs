//! What the computer says of itself: its name and its clock.

use rustix::time::ClockId;

use crate::Timestamp;

/// The computer's own name, for display.
#[must_use]
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The time by the computer's clock, which may be wrong and may jump.
///
/// This is the one place that reads it: everything else is handed a clock.
#[must_use]
pub fn now() -> Timestamp {
    let now = rustix::time::clock_gettime(ClockId::Realtime);
    Timestamp { secs: now.tv_sec, nanos: u32::try_from(now.tv_nsec).unwrap_or_default() }
}
