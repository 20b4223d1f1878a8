//! The cost model: what a run of so many items and bytes takes, from what earlier runs took.
//!
//! `time = items / item rate + bytes / byte rate`, with a rate of its own for items that did not
//! change, which cost a look and no more, and a short start that every run has. The rates are
//! fitted to the history of runs by least squares of the error as a factor, so that an hour-long run
//! and a run of seconds count alike. A weak belief stands beside them, in what was measured on the
//! way, or else in typical rates: with no run at all it is the answer, and from the first run on it
//! tells only what the runs leave open.
//!
//! How sure an estimate is comes from how well the model explains the runs that it was fitted to.

mod fit;
mod slow;

use fit::{Costs, Row};
pub use slow::{Past, Slowness, slower_than_usual};

use serde::{Deserialize, Serialize};

/// What typical rates are believed to be, before any run: items that changed, items that did not,
/// bytes, each a second. Those of a small computer with a disk over gigabit Ethernet.
const TYPICAL: [f64; 3] = [10_000.0, 200_000.0, 60e6];
/// What a run is believed to take beside them, in seconds: to start, to ask, to end. It keeps a run that was
/// over at once from saying that its few items are slow.
const START_SECONDS: f64 = 0.1;
/// An estimate is never surer than this, as share of itself.
const SUREST: f64 = 0.1;
/// Without runs, an estimate may be off by this share of itself.
const UNSURE: f64 = 0.6;
/// A run is never called further off than by this share.
const FURTHEST_OFF: f64 = 10.0;
/// A run of so many seconds and more counts whole; most of a shorter one is its start and its end.
const WHOLE_SECONDS: f64 = 0.5;
/// How much work a run was, or is to be.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Work {
    /// Items that are new or changed.
    #[serde(default)]
    pub items: u64,
    /// Items that are as they were.
    #[serde(default)]
    pub items_unchanged: u64,
    /// Bytes that are read and stored.
    #[serde(default)]
    pub bytes: u64,
}

impl Work {
    /// The same, as the terms of the sum; no work has no start either.
    fn terms(&self) -> [f64; 4] {
        let starts = if *self == Self::default() { 0.0 } else { 1.0 };
        [self.items as f64, self.items_unchanged as f64, self.bytes as f64, starts]
    }
}

/// What one term of the model costs, and how sure it is: fitted from a history.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostModel {
    /// Seconds for each item, each unchanged item, each byte, and for a start.
    seconds: Costs,
    /// By which share of itself an estimate is typically off.
    spread: f64,
    /// How many runs it comes from.
    runs: usize,
    /// Whether measured runs stood beside them.
    measured: bool,
}

/// What a run is expected to take.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// Seconds.
    pub seconds: f64,
    /// It may well be this many seconds more or less.
    pub plus_minus_seconds: f64,
    /// What takes the largest part of it.
    pub mostly: Part,
    /// The rate of that part: items or bytes a second.
    pub rate: f64,
    /// How many earlier runs it comes from.
    pub runs: usize,
    /// Whether backups that a measurement made stood beside them.
    pub measured: bool,
}

/// A part of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Items that are new or changed.
    Items,
    /// Looking at items that did not change.
    UnchangedItems,
    /// Bytes.
    Bytes,
}

impl CostModel {
    /// Fits the model to runs: what each had to do, and the seconds that it took. Those that were `measured`
    /// on the way are believed where the runs say nothing.
    pub fn fit(runs: &[(Work, f64)], measured: &[(Work, f64)]) -> Self {
        let (own, measured) = (rows(runs), rows(measured));
        let [items, unchanged, bytes] = TYPICAL.map(|rate| 1.0 / rate);
        let believed = fit::near(&[items, unchanged, bytes, START_SECONDS], &measured);
        let seconds = fit::near(&believed, &own);
        let spread = spread(if own.is_empty() { &measured } else { &own }, &seconds);
        Self { seconds, spread, runs: own.len(), measured: !measured.is_empty() }
    }

    /// How many bytes go each second.
    pub fn bytes_per_second(&self) -> f64 {
        1.0 / self.seconds[2].max(f64::MIN_POSITIVE)
    }

    /// The same where so many bytes go each second.
    #[must_use]
    pub fn at_byte_rate(mut self, bytes_per_second: f64) -> Self {
        self.seconds[2] = 1.0 / bytes_per_second.max(1.0);
        self
    }

    /// The same where so many items can be dealt with each second.
    #[must_use]
    pub fn at_item_rate(mut self, items_per_second: f64) -> Self {
        self.seconds[0] = 1.0 / items_per_second.max(f64::MIN_POSITIVE);
        self
    }

    /// What `work` is expected to take.
    pub fn estimate(&self, work: &Work) -> Estimate {
        let terms = work.terms();
        let parts = [0, 1, 2, 3].map(|term| terms[term] * self.seconds[term]);
        let seconds: f64 = parts.iter().sum();
        let names = [Part::Items, Part::UnchangedItems, Part::Bytes];
        let most = (0..3).max_by(|&a, &b| parts[a].total_cmp(&parts[b])).unwrap_or(0);
        let rate = if self.seconds[most] > 0.0 { 1.0 / self.seconds[most] } else { 0.0 };
        Estimate {
            seconds,
            plus_minus_seconds: seconds * self.spread,
            mostly: names[most],
            rate,
            runs: self.runs,
            measured: self.measured,
        }
    }
}

/// What usable runs say, each less if it was over at once.
fn rows(runs: &[(Work, f64)]) -> Vec<Row> {
    let usable = runs.iter().filter(|(work, seconds)| {
        *seconds > 0.0 && seconds.is_finite() && *work != Work::default()
    });
    let row = |(work, seconds): &(Work, f64)| {
        (work.terms(), *seconds, (seconds / WHOLE_SECONDS).min(1.0).powi(2))
    };
    usable.map(row).collect()
}

/// By which share of itself the model is typically off, wider the fewer runs there are.
fn spread(rows: &[Row], seconds: &Costs) -> f64 {
    let error = |(terms, took, weight): &Row| {
        let expected: f64 = terms.iter().zip(seconds).map(|(term, cost)| term * cost).sum();
        weight * (expected / took - 1.0).min(FURTHEST_OFF).powi(2)
    };
    let count: f64 = rows.iter().map(|(_, _, weight)| weight).sum();
    let typical = (rows.iter().map(error).sum::<f64>() / count.max(f64::MIN_POSITIVE)).sqrt();
    let few = UNSURE / (1.0 + count);
    (typical + few).clamp(SUREST, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of a computer with these rates, and the usual start.
    fn history(rates: [f64; 3], noise: f64) -> Vec<(Work, f64)> {
        let works = [
            (100_000, 0, 1_000_000_000),
            (1_000, 99_000, 10_000_000),
            (50_000, 60_000, 90_000_000),
            (10, 100_000, 5_000_000_000),
            (200_000, 0, 400_000_000),
            (0, 150_000, 0),
        ];
        let run = |(at, (items, items_unchanged, bytes)): (usize, (u64, u64, u64))| {
            let work = Work { items, items_unchanged, bytes };
            let seconds: f64 = work.terms().iter().zip(rates).map(|(term, rate)| term / rate).sum();
            let noise = if at % 2 == 0 { 1.0 + noise } else { 1.0 - noise };
            (work, START_SECONDS + seconds * noise)
        };
        works.into_iter().enumerate().map(run).collect()
    }

    #[test]
    fn the_rates_that_made_a_history_are_found_again() {
        let rates = [5_000.0, 400_000.0, 38e6];
        let model = CostModel::fit(&history(rates, 0.0), &[]);
        for (found, rate) in model.seconds.iter().zip(rates) {
            let off = (1.0 / found / rate - 1.0).abs();
            assert!(off < 0.15, "1/{found} for {rate}");
        }
        let work = Work { items: 1_000_000, items_unchanged: 0, bytes: 400_000_000_000 };
        let estimate = model.estimate(&work);
        let truth = 200.0 + 400e9 / 38e6;
        assert!((estimate.seconds / truth - 1.0).abs() < 0.15, "{estimate:?} for {truth}");
        assert_eq!((estimate.mostly, estimate.runs), (Part::Bytes, 6));
        assert!(estimate.plus_minus_seconds < 0.3 * estimate.seconds);
    }

    #[test]
    fn a_computer_that_is_far_slower_or_faster_than_typical_ones_is_known_after_a_few_runs() {
        for rates in [[100.0, 3_000.0, 4e6], [80_000.0, 2e6, 900e6], [100.0, 2e6, 900e6]] {
            let all = history(rates, 0.0);
            let model = CostModel::fit(&all[..4], &[]);
            for (work, took) in all {
                let off = (model.estimate(&work).seconds - took).abs();
                assert!(off < 1.0 || off < 0.15 * took, "{off} of {took} s, {work:?} {rates:?}");
            }
        }
    }

    #[test]
    fn a_history_that_scatters_makes_an_estimate_less_sure() {
        let work = Work { items: 1000, items_unchanged: 0, bytes: 1_000_000 };
        let share = |noise| {
            let estimate =
                CostModel::fit(&history([5_000.0, 400_000.0, 38e6], noise), &[]).estimate(&work);
            estimate.plus_minus_seconds / estimate.seconds
        };
        assert!(share(0.4) > share(0.0) + 0.15, "{} and {}", share(0.4), share(0.0));
    }

    #[test]
    fn without_a_history_typical_rates_answer_and_say_how_unsure_they_are() {
        let model = CostModel::fit(&[], &[]);
        let estimate = model.estimate(&Work { items: 100_000, ..Work::default() });
        assert!((estimate.seconds - 10.1).abs() < 1e-6, "{estimate:?}");
        assert_eq!((estimate.runs, estimate.mostly), (0, Part::Items));
        assert!((estimate.plus_minus_seconds - 6.06).abs() < 1e-6, "{estimate:?}");
        assert_eq!(model.estimate(&Work::default()).seconds, 0.0);
    }

    #[test]
    fn what_was_measured_answers_until_there_are_runs() {
        let rates = [2_000.0, 90_000.0, 200e6];
        let measured = history(rates, 0.0);
        let work = Work { items: 100_000, items_unchanged: 0, bytes: 20_000_000_000 };
        let truth = |rates: [f64; 3]| 100_000.0 / rates[0] + 20e9 / rates[2];
        let estimate = CostModel::fit(&[], &measured).estimate(&work);
        assert!((estimate.seconds / truth(rates) - 1.0).abs() < 0.2, "{estimate:?}");
        assert_eq!((estimate.runs, estimate.measured), (0, true));
        let own = [5_000.0, 400_000.0, 38e6];
        let estimate = CostModel::fit(&history(own, 0.0), &measured).estimate(&work);
        assert!((estimate.seconds / truth(own) - 1.0).abs() < 0.3, "{estimate:?}");
    }

    #[test]
    fn an_estimate_for_the_work_of_the_only_run_is_what_that_took() {
        let works = [
            (100_000, 0, 20_000_000_000),
            (5, 0, 50_000_000_000),
            (300_000, 0, 300_000_000),
            (0, 1_000_000, 0),
            (1_000, 400_000, 700_000_000),
        ];
        let other = history([8_000.0, 300_000.0, 90e6], 0.0);
        for (items, items_unchanged, bytes) in works {
            let work = Work { items, items_unchanged, bytes };
            let usual = CostModel::fit(&[], &[]).estimate(&work).seconds;
            for times in [0.01, 0.1, 1.0, 10.0, 100.0] {
                let run = [(work, (usual * times).max(1.0))];
                // As a run, as a measurement, and as a run that a measurement contradicts.
                for (runs, measured) in [(&run[..], &[][..]), (&[], &run[..]), (&run, &other)] {
                    let took = CostModel::fit(runs, measured).estimate(&work).seconds;
                    let off = took / run[0].1;
                    assert!((0.87..1.15).contains(&off), "{off} of {work:?}, {times} times");
                }
            }
        }
    }

    #[test]
    fn a_run_that_was_over_at_once_says_hardly_anything_of_its_items() {
        let short = [(Work { items: 0, items_unchanged: 63, bytes: 0 }, 0.16)];
        let million = Work { items_unchanged: 1_000_000, ..Work::default() };
        let estimate = CostModel::fit(&short, &[]).estimate(&million);
        assert!(estimate.seconds < 20.0, "{estimate:?}");
        let longer = [(short[0].0, 1.0)];
        let estimate = CostModel::fit(&longer, &[]).estimate(&million);
        assert!(estimate.seconds < 20.0, "{estimate:?}");
        let estimate = CostModel::fit(&longer, &[]).estimate(&longer[0].0);
        assert!((0.9..1.1).contains(&estimate.seconds), "{estimate:?}");
    }

    #[test]
    fn bytes_and_items_go_at_the_rate_that_is_named() {
        let model = CostModel::fit(&history([5_000.0, 400_000.0, 38e6], 0.0), &[]);
        let work = Work { bytes: 1_000_000_000, ..Work::default() };
        for (rate, seconds) in [(10e6, 100.0), (200e6, 5.0), (0.0, 1e9)] {
            let took = model.at_byte_rate(rate).estimate(&work).seconds - model.seconds[3];
            assert!((took / seconds - 1.0).abs() < 1e-9, "{took} at {rate}");
        }
        let items = Work { items: 500, ..Work::default() };
        let took = model.at_item_rate(50.0).estimate(&items).seconds - model.seconds[3];
        assert!((took - 10.0).abs() < 1e-9);
    }

    #[test]
    fn nonsense_in_a_history_gives_a_finite_estimate() {
        let huge = Work { items: u64::MAX, items_unchanged: u64::MAX, bytes: u64::MAX };
        for runs in [
            vec![(huge, 1e-300)],
            vec![(Work::default(), 5.0)],
            vec![(huge, f64::INFINITY), (huge, f64::NAN), (huge, -1.0)],
        ] {
            let estimate = CostModel::fit(&runs, &[]).estimate(&huge);
            assert!(estimate.seconds.is_finite() && estimate.seconds >= 0.0, "{estimate:?}");
            assert!(estimate.plus_minus_seconds.is_finite());
        }
    }
}
