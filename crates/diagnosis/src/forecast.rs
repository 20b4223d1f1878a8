//! How long a run will still take: what the cost model makes of the history, corrected by the run's own
//! pace as soon as it has one.

use holdall_meter::cost::{CostModel, Work};

use crate::ceilings::Ceilings;
use crate::own_limit::OwnLimit;
use crate::speed_history::{self, Kind, SpeedHistory};

/// The run's own pace weighs as much as all runs before it after so many seconds, or after this share of
/// what it is expected to take, if that is more; and as much again after this share of the work, however
/// long that took. From there on its weight grows fast: a history that is a hundred times off matters no
/// more a minute later.
const TRUST_SECONDS: f64 = 10.0;
const TRUST_SHARE: f64 = 0.05;

/// Of a run that did less than this share of its work, nobody can say how fast it goes.
const NO_PACE: f64 = 1e-3;
/// No run has taken less until now.
const LEAST_SECONDS: f64 = 1e-3;

/// No run goes on more evenly than this share of what is left.
const LEAST_UNSURE: f64 = 0.05;

/// What a run is expected to take.
pub struct Forecast {
    model: CostModel,
    /// Whether items are as they were, unless they are expected to be new.
    unchanged: bool,
}

/// What is left of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Left {
    /// Seconds.
    pub seconds: f64,
    /// It may well be so many seconds more or less.
    pub plus_minus_seconds: f64,
}

impl Forecast {
    /// From typical rates, for what no history is kept of.
    pub fn typical() -> Self {
        Self { model: CostModel::fit(&[], &[]), unchanged: false }
    }

    /// The same where the limit on sending that was set holds it back, if one was.
    pub fn held_by(self, limit: Option<OwnLimit>) -> Self {
        match limit {
            Some(limit) => Self { model: limit.hold(self.model).0, ..self },
            None => self,
        }
    }

    /// From the earlier runs of that kind in a repository, and those that `lab path` made on the way there. What a
    /// backup expects is known from the snapshot before, most of which is as it was.
    pub fn of(
        kind: Kind,
        history: &SpeedHistory,
        repository: &str,
        ceilings: Option<&Ceilings>,
    ) -> Self {
        let runs = history.comparable(kind, repository);
        let measured = ceilings.map(|ceilings| match kind {
            Kind::Backup => ceilings.runs(),
            Kind::Restore => ceilings.restores(),
        });
        let model = speed_history::model(&runs, &measured.unwrap_or_default());
        Self { model, unchanged: kind == Kind::Backup }
    }

    /// What is left after `seconds`, when of the expected items and bytes, which may be `new`, so many are
    /// done; `None` if nothing is expected.
    pub fn left(
        &self,
        done: (u64, u64),
        expected: (u64, u64),
        seconds: f64,
        new: bool,
    ) -> Option<Left> {
        let estimate = |of| self.model.estimate(&self.work(of, new));
        let (so_far, all) = (estimate(done), estimate(expected));
        if all.seconds <= 0.0 {
            return None;
        }
        let pace = Pace::of(seconds, so_far.seconds, all.seconds)?;
        let left = (all.seconds - so_far.seconds).max(0.0) * pace.times;
        let left = match self.unchanged && !new {
            true => left.max(changed_after_all(done, expected, seconds)?),
            false => left,
        };
        // What the history left unsure, the run's own pace makes known as it gets its weight.
        let unsure = all.plus_minus_seconds / all.seconds * (1.0 - pace.weight) + pace.unsure;
        let plus_minus_seconds = left * unsure.clamp(LEAST_UNSURE, 1.0);
        Some(Left { seconds: left, plus_minus_seconds })
    }

    fn work(&self, (items, bytes): (u64, u64), new: bool) -> Work {
        match self.unchanged && !new {
            true => Work { items: 0, items_unchanged: items, bytes: 0 },
            false => Work { items, items_unchanged: 0, bytes },
        }
    }
}

/// How fast a run goes beside what was expected of it.
struct Pace {
    /// What is left takes so many times as long as expected.
    times: f64,
    /// How much of that the run itself said, from 0 to 1.
    weight: f64,
    /// As share of what is left: how far the run and the history are apart, as long as both have a say.
    unsure: f64,
}

impl Pace {
    /// That of a run which after `seconds` did what was expected to take `so_far` of `all` seconds; `None`
    /// if a while went by, and nothing can be told of it.
    ///
    /// It is weighed by factors, not by differences, so that a run that is far faster than its history and
    /// one that is far slower are known equally soon.
    fn of(seconds: f64, so_far: f64, all: f64) -> Option<Self> {
        let share = (so_far / all).min(1.0);
        let trust = TRUST_SECONDS.max(TRUST_SHARE * all);
        if share < NO_PACE && seconds >= trust {
            return None;
        }
        let own = seconds.max(LEAST_SECONDS) / so_far.max(NO_PACE * all);
        let evidence = seconds / trust + share / TRUST_SHARE;
        let weight = evidence.powi(3) / (1.0 + evidence.powi(3));
        let unsure = weight * (1.0 - weight) * own.ln().abs();
        Some(Self { times: own.powf(weight), weight, unsure })
    }
}

/// How many seconds more at least are left of what was expected to be as it was, at the run's own pace: a
/// large file may have changed. `None` if a while went by, and nothing can be told of the pace.
fn changed_after_all(done: (u64, u64), expected: (u64, u64), seconds: f64) -> Option<f64> {
    let share = |(done, expected): (u64, u64)| done as f64 / expected.max(1) as f64;
    let parts = [(done.0, expected.0), (done.1, expected.1)].into_iter().filter(|part| part.1 > 0);
    let share = parts.map(share).fold(1.0, f64::min);
    let weight = seconds / (seconds + TRUST_SECONDS);
    match (share > 0.0, seconds < TRUST_SECONDS) {
        (true, _) => Some(seconds * (1.0 - share) / share * weight),
        (false, true) => Some(0.0),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::own_limit::tests::own_limit;

    /// Of runs at 1,000 items and 10 MB a second.
    fn forecast() -> Forecast {
        let run = |items: u64, bytes: u64| {
            let work = Work { items, items_unchanged: 0, bytes };
            (work, items as f64 / 1_000.0 + bytes as f64 / 10e6)
        };
        let runs = [
            run(100_000, 0),
            run(1_000, 5_000_000_000),
            run(50_000, 800_000_000),
            run(9_000, 90_000_000),
        ];
        Forecast { model: CostModel::fit(&runs, &[]), unchanged: false }
    }

    #[track_caller]
    fn assert_near(left: Option<Left>, seconds: f64) {
        let left = left.expect("something is expected").seconds;
        assert!((left / seconds - 1.0).abs() < 0.1, "{left} for {seconds}");
    }

    #[test]
    fn before_a_run_has_a_pace_the_history_says_what_it_takes() {
        assert_near(forecast().left((0, 0), (100_000, 1_000_000_000), 0.0, false), 200.0);
        assert_eq!(forecast().left((0, 0), (0, 0), 1.0, false), None);
        let as_before = Forecast { unchanged: true, ..forecast() };
        assert_near(as_before.left((0, 0), (100_000, 1_000_000_000), 0.0, true), 200.0);
        assert!(
            as_before.left((0, 0), (100_000, 1_000_000_000), 0.0, false).unwrap().seconds < 20.0
        );
    }

    #[test]
    fn a_limit_on_sending_holds_the_first_estimate_back() {
        let left =
            |limit| forecast().held_by(limit).left((0, 0), (1_000, 10_000_000_000), 0.0, true);
        assert_near(left(None), 1_000.0);
        assert_near(left(Some(own_limit(1_000_000, None))), 10_000.0);
        assert_near(left(Some(own_limit(50_000_000, None))), 1_000.0);
    }

    #[test]
    fn a_large_file_that_changed_is_not_expected_to_be_over_at_once() {
        let as_before = Forecast { unchanged: true, ..forecast() };
        let left = |bytes, seconds| as_before.left((4, bytes), (5, 60_000_000_000), seconds, false);
        assert_eq!(left(0, 100.0), None, "nobody knows");
        assert!(left(0, 1.0).unwrap().seconds < 1.0);
        assert!((90.0..101.0).contains(&left(30_000_000_000, 100.0).unwrap().seconds));
    }

    #[test]
    fn a_run_of_the_usual_pace_is_not_misled_by_few_large_files_at_its_end() {
        // All items but one are done, and half of the time is still to come.
        assert_near(forecast().left((99_999, 0), (100_000, 1_000_000_000), 100.0, false), 100.0);
    }

    #[test]
    fn what_is_left_is_surer_the_longer_the_run_has_shown_its_pace() {
        let expected = (1_000_000, 10_000_000_000);
        let typical = Forecast::typical();
        let share = |done, seconds| {
            let left = typical.left(done, expected, seconds, false).expect("something is expected");
            left.plus_minus_seconds / left.seconds
        };
        let (first, later) = (share((0, 0), 0.0), share((500_000, 5_000_000_000), 100.0));
        assert!(later < first / 3.0, "{first} and then {later}");
        assert!((share((900_000, 9_000_000_000), 1e6) - LEAST_UNSURE).abs() < 1e-9);
    }

    #[test]
    fn a_run_that_is_slower_than_its_history_goes_by_its_own_pace() {
        let expected = (1_000_000, 10_000_000_000);
        assert_near(forecast().left((500_000, 5_000_000_000), expected, 4_000.0, false), 4_000.0);
        let left =
            forecast().left(expected, expected, 8_000.0, false).expect("something was expected");
        assert_eq!((left.seconds, left.plus_minus_seconds), (0.0, 0.0));
    }

    #[test]
    fn a_run_a_hundred_times_slower_or_faster_than_its_history_is_known_after_its_first_quarter() {
        // By the history, of 3 seconds, of 3 minutes and of 3 hours.
        for (items, bytes) in [(1_500, 15_000_000), (90_000, 900_000_000), (5_400_000, 54e9 as u64)]
        {
            let expected = forecast().model.estimate(&Work { items, items_unchanged: 0, bytes });
            for times in [0.01, 0.1, 10.0, 100.0] {
                let takes = expected.seconds * times;
                for share in [0.25, 0.5, 0.9] {
                    let of = |all: u64| (all as f64 * share) as u64;
                    let done = (of(items), of(bytes));
                    let left = forecast().left(done, (items, bytes), takes * share, false);
                    let (left, truth) = (left.unwrap().seconds, takes * (1.0 - share));
                    assert!((left / truth - 1.0).abs() < 0.15, "{left} for {truth}");
                }
            }
        }
    }

    #[test]
    fn of_a_run_that_gets_nowhere_nobody_can_say_when_it_ends() {
        let left = |seconds| forecast().left((0, 0), (1_500, 15_000_000), seconds, false);
        assert!(left(1.0).is_some());
        assert_eq!(left(60.0), None);
    }
}
