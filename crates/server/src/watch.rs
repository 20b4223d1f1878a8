//! Whether the clock can be believed, before anything is deleted for its age.
//!
//! A clock that was set, or a server that was off for long, makes everything look old at once. So
//! deleting waits until the clock has gone on evenly for a day: beside a clock that nobody sets while
//! the server runs, and beside what was noted where it did not run. And what has to be so and so old
//! to be deleted, and was there before the clock was set, has to be so old since.

use serde::{Deserialize, Serialize};

const MINUTE_NS: i64 = 60 * 1_000_000_000;
const DAY_NS: i64 = 24 * 60 * MINUTE_NS;
/// The clock may be set by so much: a leap second, a correction.
const SET_NS: i64 = 10 * MINUTE_NS;
/// Longer than this nobody leaves a server off without reason to look twice.
const OFF_NS: i64 = 14 * DAY_NS;

/// What was noted of the clock. Times in nanoseconds since 1970 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Noted {
    /// The last time that it showed.
    seen_ns: i64,
    /// Since when it has gone on evenly.
    even_since_ns: i64,
}

/// What the time was, by both clocks, when this process looked last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Looked {
    now_ns: i64,
    running_ns: i64,
}

impl Noted {
    /// What is to be noted now. `looked` is what this process saw when it last looked.
    pub(crate) fn after(
        before: Option<Self>,
        looked: Option<Looked>,
        (now_ns, running_ns): (i64, i64),
    ) -> (Self, Looked) {
        let is_even = match (before, looked) {
            // Nothing was noted yet, so nothing was set since.
            (None, _) => {
                let noted = Self { seen_ns: now_ns, even_since_ns: now_ns.saturating_sub(DAY_NS) };
                return (noted, Looked { now_ns, running_ns });
            }
            (_, Some(last)) => {
                let passed = now_ns.saturating_sub(last.now_ns);
                let ran = running_ns.saturating_sub(last.running_ns);
                passed.abs_diff(ran) <= SET_NS.unsigned_abs()
            }
            (Some(noted), None) => {
                (-SET_NS..=OFF_NS).contains(&now_ns.saturating_sub(noted.seen_ns))
            }
        };
        let even_since_ns = before.filter(|_| is_even).map_or(now_ns, |noted| noted.even_since_ns);
        (Self { seen_ns: now_ns, even_since_ns }, Looked { now_ns, running_ns })
    }

    /// From when on things may be deleted for their age, if the clock goes on as it does.
    pub(crate) fn believed_from_ns(&self) -> i64 {
        self.even_since_ns.saturating_add(DAY_NS)
    }

    /// Whether it is certain that so much time has passed since then: what was before the clock went
    /// unevenly may be younger than it looks, and counts from the moment since when it has not.
    pub(crate) fn has_passed(&self, since_ns: i64, time_ns: i64) -> bool {
        self.seen_ns.saturating_sub(since_ns.max(self.even_since_ns)) >= time_ns
    }

    /// Whether things may be deleted for their age now.
    pub(crate) fn is_believed(&self) -> bool {
        self.seen_ns >= self.believed_from_ns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at the clock at these times, in hours: by it, and by the one that nobody sets. None: the
    /// server was started anew.
    fn believed(looks: &[Option<(i64, i64)>]) -> Vec<bool> {
        const HOUR_NS: i64 = 60 * MINUTE_NS;
        let (mut noted, mut last, mut believed) = (None, None, Vec::new());
        for look in looks {
            let Some((now, running)) = look else {
                last = None;
                continue;
            };
            let (next, looked) = Noted::after(noted, last, (now * HOUR_NS, running * HOUR_NS));
            believed.push(next.is_believed());
            (noted, last) = (Some(next), Some(looked));
        }
        believed
    }

    #[test]
    fn a_clock_that_goes_on_evenly_is_believed() {
        assert_eq!(believed(&[Some((100, 0)), Some((101, 1)), Some((150, 50))]), [true; 3]);
        // Started anew, after an hour and after a week.
        let looks = [Some((100, 0)), None, Some((101, 0)), None, Some((269, 0)), Some((270, 1))];
        assert_eq!(believed(&looks), [true; 4]);
    }

    #[test]
    fn after_a_jump_a_day_has_to_pass_evenly() {
        for jump in [-90_000, -2, 2, 90_000] {
            let at = 1000 + jump;
            let looks = [Some((1000, 0)), Some((at, 0)), Some((at + 23, 23)), Some((at + 24, 24))];
            assert_eq!(believed(&looks), [true, false, false, true], "{jump}");
            // And back: from then on again.
            let looks = [Some((1000, 0)), Some((at, 0)), Some((1020, 20)), Some((1044, 44))];
            assert_eq!(believed(&looks), [true, false, false, true], "{jump}");
        }
    }

    #[test]
    fn a_server_that_was_off_for_long_or_whose_clock_went_back_waits() {
        let off = 15 * 24;
        for at in [1000 + off, 998] {
            let looks = [Some((1000, 0)), None, Some((at, 0)), Some((at + 24, 24))];
            assert_eq!(believed(&looks), [true, false, true], "{at}");
        }
        // Being started again and again does not help.
        let looks =
            [Some((1000, 0)), None, Some((2000, 0)), None, Some((2010, 0)), None, Some((2025, 0))];
        assert_eq!(believed(&looks), [true, false, false, true]);
    }
}
