//! An alarm by the clock on the wall. It also rings when that clock is set and when the computer wakes up: a plain sleep
//! lasts as long again as the computer slept, and knows nothing of the clock.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// As good as never: in the year 2262.
const NEVER_NS: i64 = i64::MAX;

/// An alarm, ready to be polled for.
#[derive(Debug)]
pub struct Alarm {
    timer: OwnedFd,
}

impl Alarm {
    /// One that rings only when the clock is set.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK.union(TimerfdFlags::CLOEXEC);
        let alarm = Self { timer: timerfd_create(TimerfdClockId::Realtime, flags)? };
        alarm.set_ns(None)?;
        Ok(alarm)
    }

    /// Has it ring at that moment, in nanoseconds since 1970 UTC, at once if that is past, and forget the one before.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn set_ns(&self, at_ns: Option<i64>) -> io::Result<()> {
        // Zero would switch it off.
        let at_ns = at_ns.unwrap_or(NEVER_NS).max(1);
        let at = Timespec { tv_sec: at_ns / 1_000_000_000, tv_nsec: at_ns % 1_000_000_000 };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: at };
        let flags = TimerfdTimerFlags::ABSTIME.union(TimerfdTimerFlags::CANCEL_ON_SET);
        match timerfd_settime(&self.timer, flags, &once) {
            // It rang for a clock that was set, and is set all the same.
            Ok(_) | Err(Errno::CANCELED) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends its ringing.
    pub fn silence(&self) {
        // That the clock was set is an error here, and that it does not ring.
        let _ = rustix::io::read(&self.timer, &mut [0; 8]);
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waiting::{is_ready, wait};
    use crate::{Clock, SystemClock};

    #[test]
    fn an_alarm_rings_at_its_moment_and_not_before() {
        let alarm = Alarm::new().unwrap();
        assert!(!is_ready(&alarm).unwrap());
        let at_ns = SystemClock.now_ns() + 20_000_000;
        alarm.set_ns(Some(at_ns)).unwrap();
        wait(&[alarm.as_fd()]).unwrap();
        assert!(SystemClock.now_ns() >= at_ns && is_ready(&alarm).unwrap());
        alarm.silence();
        assert!(!is_ready(&alarm).unwrap());
    }

    #[test]
    fn a_moment_that_is_past_rings_at_once() {
        let alarm = Alarm::new().unwrap();
        for past in [-1, 0, 1] {
            alarm.set_ns(Some(past)).unwrap();
            wait(&[alarm.as_fd()]).unwrap();
            alarm.silence();
        }
        alarm.set_ns(None).unwrap();
        assert!(!is_ready(&alarm).unwrap());
    }
}
