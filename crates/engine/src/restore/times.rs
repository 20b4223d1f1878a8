//! Which times the file systems of a target keep.
//!
//! None of them says that it cuts a time to what it can hold: that is seen where it is read back. That takes a
//! call, which a million files must not take. So only a time is read back that some file system might not hold,
//! and that nothing told of so far which the same one kept: a later year, an earlier year, or one more digit.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use holdall_sys::Timestamp;

use crate::run::lock;

/// Every file system holds these: FAT from 1980 on, 32 bits up to 2038.
const HELD_BY_ALL: RangeInclusive<i64> = 315_619_200..=2_147_400_000;
/// FAT keeps every other second.
const COARSEST_NS: i128 = 2_000_000_000;
/// Digits that a time of an even second without nanoseconds does not need.
const ALL_DIGITS: u32 = 10;
/// No device has this number.
const NONE: u64 = u64::MAX;

/// What is known of the file systems, by their devices.
pub(super) struct Times {
    known: Mutex<HashMap<u64, Known>>,
    /// One of which all digits are known.
    fine: AtomicU64,
}

struct Known {
    seconds: RangeInclusive<i64>,
    /// Digits at the end of a time that it may lose; none once it lost some, which is told once.
    may_lose: u32,
}

/// What became of a time.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// It is as it was set, or less exact as others before it.
    Kept,
    /// It is the first that is less exact.
    Coarser,
    /// It is another.
    Other,
}

impl Default for Times {
    fn default() -> Self {
        Self { known: Mutex::default(), fine: AtomicU64::new(NONE) }
    }
}

impl Times {
    /// What became of a time that was set on that device; `found` reads it back where that is not known.
    pub(super) fn held(
        &self,
        device: u64,
        time: Timestamp,
        found: impl FnOnce() -> Option<Timestamp>,
    ) -> Held {
        let is_usual = HELD_BY_ALL.contains(&time.secs);
        if is_usual && self.fine.load(Ordering::Relaxed) == device {
            return Held::Kept;
        }
        let unneeded = unneeded_digits(time);
        let is_known = {
            let mut known = lock(&self.known);
            let one = known.entry(device).or_default();
            one.seconds.contains(&time.secs) && unneeded >= one.may_lose
        };
        if is_known {
            return Held::Kept;
        }
        // Without an answer nothing is known.
        found().map_or(Held::Kept, |found| self.learn(device, time, found))
    }

    fn learn(&self, device: u64, time: Timestamp, found: Timestamp) -> Held {
        let mut known = lock(&self.known);
        let one = known.entry(device).or_default();
        let lost_ns = (nanoseconds(time) - nanoseconds(found)).abs();
        if lost_ns >= COARSEST_NS {
            return Held::Other;
        }
        let (first, last) = one.seconds.clone().into_inner();
        one.seconds = first.min(time.secs)..=last.max(time.secs);
        let could_lose = one.may_lose;
        one.may_lose = match lost_ns {
            0 => could_lose.min(unneeded_digits(time)),
            _ => 0,
        };
        if one.may_lose == 0 {
            self.fine.store(device, Ordering::Relaxed);
        }
        if lost_ns > 0 && could_lose > 0 { Held::Coarser } else { Held::Kept }
    }
}

impl Default for Known {
    fn default() -> Self {
        Self { seconds: HELD_BY_ALL, may_lose: ALL_DIGITS }
    }
}

fn nanoseconds(time: Timestamp) -> i128 {
    i128::from(time.secs) * 1_000_000_000 + i128::from(time.nanos)
}

/// How many digits at the end of a time may be lost without a loss.
fn unneeded_digits(time: Timestamp) -> u32 {
    match time.nanos {
        0 if time.secs % 2 == 0 => ALL_DIGITS,
        0 => ALL_DIGITS - 1,
        nanos => (0..9).take_while(|digits| nanos % 10_u32.pow(digits + 1) == 0).count() as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(secs: i64, nanos: u32) -> Timestamp {
        Timestamp { secs, nanos }
    }

    #[test]
    fn a_million_files_are_not_looked_at_and_a_time_that_is_cut_is_seen() {
        let (times, mut looks) = (Times::default(), 0);
        let mut held = |device, asked: Timestamp, found: Timestamp| {
            let look = || {
                looks += 1;
                Some(found)
            };
            (times.held(device, asked, look), looks)
        };
        // Exact to the nanosecond, and of any year.
        for second in 0..100 {
            let usual = time(1_000_000_000 + second, 123_456_789);
            assert_eq!(held(1, usual, usual), (Held::Kept, 1));
        }
        let (first, late) = (time(1, 0), time(4_102_444_800, 0));
        assert_eq!(held(1, first, first), (Held::Kept, 2));
        assert_eq!(held(1, first, first), (Held::Kept, 2));
        assert_eq!(held(1, late, late), (Held::Kept, 3));
        assert_eq!(held(1, time(3_000_000_000, 5), late), (Held::Kept, 3));
        // Another one: whole seconds until 2038.
        let coarse = time(1_000_000_000, 500_000_000);
        assert_eq!(held(2, coarse, time(1_000_000_000, 0)), (Held::Coarser, 4));
        assert_eq!(held(2, time(1_000_000_000, 7), time(1_000_000_000, 0)), (Held::Kept, 4));
        for again in 5..8 {
            assert_eq!(held(2, late, time(i64::from(i32::MAX), 0)), (Held::Other, again));
        }
    }

    #[test]
    fn one_more_digit_is_looked_at_once() {
        let (times, mut looks) = (Times::default(), 0);
        let digits =
            [time(2_000, 0), time(2_001, 0), time(2_001, 500_000_000), time(2_001, 123_456_700)];
        for one in digits.into_iter().chain(digits) {
            let one = time(one.secs + 1_000_000_000, one.nanos);
            let look = || {
                looks += 1;
                Some(one)
            };
            assert_eq!(times.held(1, one, look), Held::Kept);
        }
        assert_eq!(looks, 3);
    }
}
