//! Whether the clock can be believed, before anything is deleted for its age.
//!
//! A clock that was set, or a server that was off for long, makes everything look old at once. So time
//! counts only where it is certain that it passed: what the clock showed is held against the one that
//! nobody sets, which goes on while the computer runs, whether the server does or not. What the clock
//! went further than that does not count; nor does the time between two starts of the computer, for which
//! nobody can tell how long it was off. What is deleted for its age so goes too late, and never too early.
//!
//! ```text
//! the clock    ----- Monday -----|                |----- Wednesday -----
//! the other    0 ------------ 9h |  computer off  | 0 ------------- 9h
//! what counts  ==================                  ====================
//! ```
//!
//! And a clock that was set tells that something is wrong: nothing is deleted until it has gone on evenly
//! for a day.

use serde::{Deserialize, Serialize};

const MINUTE_NS: i64 = 60 * 1_000_000_000;
const DAY_NS: i64 = 24 * 60 * MINUTE_NS;
/// The clock may be set by so much, in all: a leap second, corrections.
const SET_NS: i64 = 10 * MINUTE_NS;
/// So long after the computer's start the clock may yet be set to what it is: some have no battery.
const SETTLING_NS: i64 = 60 * MINUTE_NS;
/// Longer than this nobody leaves a computer off without reason to look twice.
const OFF_NS: i64 = 14 * DAY_NS;
/// More stretches that do not count are not kept apart: a year of nights.
const MOST_STRETCHES: usize = 400;

/// What the clocks show. Times in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown {
    /// The time of day, since 1970 UTC.
    pub(crate) now_ns: i64,
    /// The time by the clock that nobody sets, since a moment of its own for each start of the computer.
    pub(crate) running_ns: i64,
    /// Which start that is.
    pub(crate) boot_id: Option<String>,
}

/// What was noted of the clock. Times in nanoseconds since 1970 UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Noted {
    /// The last time that it showed.
    seen_ns: i64,
    /// What the clock that nobody sets showed then.
    running_ns: i64,
    /// At which start of the computer that was.
    boot_id: Option<String>,
    /// How far the clock was ahead of the other when it was set last, or the computer started.
    ahead_ns: i64,
    /// How long it has to go on evenly yet until it is believed.
    waits_ns: i64,
    /// Stretches of its time that do not count, from one to before the other, in order.
    uncounted: Vec<(i64, i64)>,
}

impl Noted {
    /// What is to be noted now.
    pub(crate) fn after(before: Option<Self>, shown: Shown) -> Self {
        let Some(before) = before else { return Self::first(shown) };
        let goes_on = shown.boot_id.is_some() && shown.boot_id == before.boot_id;
        let running_ns = if goes_on { shown.running_ns } else { before.running_ns };
        let ran_ns = running_ns.saturating_sub(before.running_ns);
        let waits_ns = before.waits_ns.saturating_sub(ran_ns).max(0);
        if goes_on && before.is_even(shown.now_ns, shown.running_ns) {
            let Shown { now_ns: seen_ns, running_ns, .. } = shown;
            return Self { seen_ns, running_ns, waits_ns, ..before };
        }
        // As far as the clock went if only that time passed which certainly did.
        let certain_ns = before.ahead_ns.saturating_add(running_ns);
        let may_be_right = !goes_on || before.running_ns < SETTLING_NS;
        let set_ns = shown.now_ns.saturating_sub(certain_ns).unsigned_abs();
        let is_believed = may_be_right && set_ns <= OFF_NS.unsigned_abs();
        let waits_ns = if is_believed { waits_ns } else { DAY_NS };
        let uncounted = with_stretch(before.uncounted, certain_ns, shown.now_ns);
        Self { waits_ns, uncounted, ..Self::first(shown) }
    }

    /// Nothing was noted yet, so nothing was set since; what is there already counts from now on.
    fn first(shown: Shown) -> Self {
        let Shown { now_ns, running_ns, boot_id } = shown;
        let ahead_ns = now_ns.saturating_sub(running_ns);
        let uncounted = vec![(i64::MIN, now_ns)];
        Self { seen_ns: now_ns, running_ns, boot_id, ahead_ns, waits_ns: 0, uncounted }
    }

    /// What to go by while the clock shows a time at which it cannot have been set yet.
    pub(crate) fn not_set(shown: Shown) -> Self {
        Self { waits_ns: DAY_NS, ..Self::first(shown) }
    }

    /// Whether the clock went as far as the one that nobody sets, while the computer ran on.
    pub(crate) fn is_even(&self, now_ns: i64, running_ns: i64) -> bool {
        let ahead_ns = now_ns.saturating_sub(running_ns);
        ahead_ns.abs_diff(self.ahead_ns) <= SET_NS.unsigned_abs()
    }

    /// From when on things may be deleted for their age, if the clock goes on as it does.
    pub(crate) fn believed_from_ns(&self) -> i64 {
        self.seen_ns.saturating_add(self.waits_ns)
    }

    /// Whether things may be deleted for their age now.
    pub(crate) fn is_believed(&self) -> bool {
        self.waits_ns == 0
    }

    /// How much time has certainly passed between then and now, up to when the clock went on evenly.
    pub(crate) fn passed_ns(&self, since_ns: i64, now_ns: i64) -> i64 {
        let within = |(from_ns, to_ns): &(i64, i64)| {
            let (from_ns, to_ns) = ((*from_ns).max(since_ns), (*to_ns).min(now_ns));
            to_ns.saturating_sub(from_ns).max(0)
        };
        let passed_ns = now_ns.saturating_sub(since_ns);
        self.uncounted.iter().map(within).fold(passed_ns, i64::saturating_sub)
    }
}

/// The same with one more, if the clock was set ahead. If it was set back, it goes through some of them
/// once more, and there it counts.
fn with_stretch(stretches: Vec<(i64, i64)>, from_ns: i64, now_ns: i64) -> Vec<(i64, i64)> {
    let all = stretches.into_iter().chain([(from_ns, now_ns)]);
    let until_now = all.map(|(from_ns, to_ns)| (from_ns, to_ns.min(now_ns)));
    let mut kept: Vec<_> = until_now.filter(|(from_ns, to_ns)| from_ns < to_ns).collect();
    if kept.len() > MOST_STRETCHES {
        // What counted between the two oldest does not any more.
        let (from_ns, _) = kept.remove(0);
        kept.iter_mut().take(1).for_each(|oldest| oldest.0 = from_ns);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_NS: i64 = 60 * MINUTE_NS;

    /// What is noted after looks at the clocks at these times, in hours: by the one that can be set, and by
    /// the other, at a start of the computer.
    fn noted(looks: &[(i64, i64, u64)]) -> Vec<Noted> {
        let mut all: Vec<Noted> = Vec::new();
        for (now, running, boot) in looks {
            let (now_ns, running_ns) = (now * HOUR_NS, running * HOUR_NS);
            let shown = Shown { now_ns, running_ns, boot_id: Some(boot.to_string()) };
            all.push(Noted::after(all.last().cloned(), shown));
        }
        all
    }

    fn believed(looks: &[(i64, i64, u64)]) -> Vec<bool> {
        noted(looks).iter().map(Noted::is_believed).collect()
    }

    /// How many hours have passed since then, after the last of these looks.
    fn passed(looks: &[(i64, i64, u64)], since: i64) -> i64 {
        let now_ns = looks.last().unwrap().0 * HOUR_NS;
        noted(looks).last().unwrap().passed_ns(since * HOUR_NS, now_ns) / HOUR_NS
    }

    #[test]
    fn a_clock_that_goes_on_evenly_is_believed_whether_the_server_runs_or_not() {
        let looks = [(100, 10, 1), (101, 11, 1), (150, 60, 1), (1150, 1060, 1)];
        assert_eq!(believed(&looks), [true; 4]);
        assert_eq!([100, 101, 1000].map(|since| passed(&looks, since)), [1050, 1049, 150]);
    }

    #[test]
    fn what_was_there_before_the_first_look_counts_from_then() {
        assert_eq!(
            [0, 100, 110].map(|since| passed(&[(100, 10, 1), (120, 30, 1)], since)),
            [20, 20, 10]
        );
    }

    #[test]
    fn after_a_jump_a_day_has_to_pass_evenly_and_what_was_jumped_over_does_not_count() {
        for jump in [-900, -2, 2, 90_000] {
            let at = 1000 + jump;
            let looks = [(1000, 10, 1), (at, 10, 1), (at + 23, 33, 1), (at + 24, 34, 1)];
            assert_eq!(believed(&looks), [true, false, false, true], "{jump}");
            assert!((24 + jump.min(0)..=24).contains(&passed(&looks, 1000)), "{jump}");
            // And back: from then on again.
            let looks = [(1000, 10, 1), (at, 10, 1), (1020, 30, 1), (1044, 54, 1)];
            assert_eq!(believed(&looks), [true, false, false, true], "{jump}");
            assert!((0..=44).contains(&passed(&looks, 1000)), "{jump}");
        }
        // A jump over what is left of the day does not end the wait.
        assert!(!believed(&[(1000, 10, 1), (2000, 10, 1), (2013, 0, 2)])[2]);
    }

    #[test]
    fn the_time_between_two_starts_of_the_computer_does_not_count() {
        let looks =
            [(100, 10, 1), (110, 20, 1), (118, 0, 2), (134, 16, 2), (142, 0, 3), (158, 16, 3)];
        assert_eq!(believed(&looks), [true; 6]);
        assert_eq!([100, 112, 118, 140].map(|since| passed(&looks, since)), [42, 32, 32, 16]);
    }

    #[test]
    fn a_computer_that_was_off_for_long_waits() {
        for off in [15 * 24, -15 * 24] {
            let at = 1000 + off;
            let looks = [(1000, 10, 1), (at, 0, 2), (at + 24, 24, 2)];
            assert_eq!(believed(&looks), [true, false, true], "{off}");
        }
        // Being started again and again does not help.
        let looks = [(1000, 10, 1), (2000, 0, 2), (2010, 0, 3), (2025, 0, 4), (2049, 24, 4)];
        assert_eq!(believed(&looks), [true, false, false, false, true]);
    }

    #[test]
    fn a_clock_that_is_right_only_a_moment_after_the_computer_started_is_believed() {
        // It has no battery, and goes on from when the computer was switched off.
        let looks = [(100, 10, 1), (99, 0, 2), (110, 0, 2), (126, 16, 2)];
        assert_eq!(believed(&looks), [true; 4]);
        assert_eq!([50, 99, 100, 110].map(|since| passed(&looks, since)), [16, 16, 16, 16]);
    }

    #[test]
    fn a_clock_that_was_wrong_for_long_does_not_keep_things_for_as_long() {
        let looks = [(1000, 10, 1), (90_000, 20, 1), (1020, 30, 1), (1050, 60, 1)];
        assert_eq!(passed(&looks, 900), 40);
    }

    #[test]
    fn where_nobody_tells_which_start_it_is_nothing_counts() {
        let shown = |now_ns| Shown { now_ns, running_ns: now_ns, boot_id: None };
        let noted = Noted::after(Some(Noted::first(shown(0))), shown(DAY_NS));
        assert_eq!(noted.passed_ns(0, DAY_NS), 0);
    }

    #[test]
    fn however_often_it_is_started_what_is_noted_stays_small_and_nothing_grows_older() {
        let nights: Vec<_> = (0..1000)
            .map(|day| [(day * 24, 0, day as u64), (day * 24 + 16, 16, day as u64)])
            .collect();
        let nights = nights.concat();
        assert_eq!(noted(&nights).last().unwrap().uncounted.len(), MOST_STRETCHES);
        assert_eq!(passed(&nights, 990 * 24), 10 * 16);
        assert_eq!(passed(&nights, 0), MOST_STRETCHES as i64 * 16);
    }
}
