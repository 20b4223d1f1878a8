//! How far a run is, how fast, how long it still takes, and what holds it back now.
//!
//! The run itself knows nothing of this: it counts, and somebody looks at the counters.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Instant;

use holdall_engine::Run;
use holdall_meter::{Layer, StageCounters, bar, count, counted, fitting, size, whole_duration};
use serde::Serialize;

use crate::forecast::Forecast;
use crate::usage::{UsageCounters, is_own_limit, judge};

/// Rates, and the layer that limits now, are those of this many seconds.
const WINDOW_SECONDS: f64 = 3.0;
/// A run that goes on is not done, however much of it is: what is left is to commit it.
const MOST_PERCENT: f64 = 99.9;
const LEAST_SECONDS_LEFT: f64 = 1.0;

/// How far a run is.
#[derive(Debug, Serialize)]
pub struct Status {
    seconds_elapsed: f64,
    items_done: u64,
    bytes_done: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    items_expected: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_expected: Option<u64>,
    items_per_second: f64,
    bytes_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    percent_done: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_remaining: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_plus_minus: Option<f64>,
    limited_by: Layer,
    /// Whether that is the limit on sending that was set.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    own_limit: bool,
    problems: u64,
}

impl Status {
    /// In one line for people, of at most so many columns. What matters least is left out first.
    pub fn words(&self, columns: usize) -> String {
        let of = |expected: Option<u64>, show: fn(u64) -> String| {
            expected.map(|expected| format!(" of {}", show(expected))).unwrap_or_default()
        };
        let (items, items_expected) = match self.items_expected {
            Some(_) => {
                (count(self.items_done), of(self.items_expected, |all| counted(all, "item")))
            }
            None => (counted(self.items_done, "item"), String::new()),
        };
        let (bytes, bytes_expected) = (size(self.bytes_done), of(self.bytes_expected, size));
        let done = format!("{items}{items_expected}, {bytes}{bytes_expected}");
        let elapsed = whole_duration(self.seconds_elapsed.floor());
        let (first, last) = match self.percent_done {
            Some(percent) => (format!("{} {percent:3.0} %", bar(percent / 100.0)), done),
            None => (format!("{elapsed}  {done}"), String::new()),
        };
        let rate = format!("{}/s", size(self.bytes_per_second as u64));
        let items_rate = format!("{}/s", counted(self.items_per_second as u64, "item"));
        let limit = self.limit_in_words();
        let parts = [first, rate, self.left_in_words(), limit, last, items_rate];
        fitting(parts.into_iter().filter(|part| !part.is_empty()), columns)
    }

    fn left_in_words(&self) -> String {
        let left = self.seconds_remaining.zip(self.seconds_plus_minus);
        left.map_or_else(String::new, |(seconds, plus_minus)| {
            let [left, about] = [seconds, plus_minus].map(|time| whole_duration(time.ceil()));
            format!("{left} left ± {about}")
        })
    }

    fn limit_in_words(&self) -> String {
        match self.limited_by {
            _ if self.own_limit => "limited by --limit-upload".to_owned(),
            Layer::Nothing | Layer::Unsure => String::new(),
            layer => format!("limited by {layer}"),
        }
    }
}

/// What was counted at one moment.
struct Sample {
    at: Instant,
    items: u64,
    bytes: u64,
    usage: UsageCounters,
    stages: Vec<StageCounters>,
}

impl Sample {
    fn take(run: &Run) -> Self {
        Self {
            at: Instant::now(),
            items: run.items.load(Ordering::Relaxed),
            bytes: run.bytes.load(Ordering::Relaxed),
            usage: UsageCounters::now(run),
            stages: run.stages(),
        }
    }
}

/// A run that is looked at from time to time: the samples of the last seconds.
pub struct Recent {
    begun: Instant,
    samples: VecDeque<Sample>,
}

impl Recent {
    /// Looks for the first time.
    pub fn begin(run: &Run) -> Self {
        let first = Sample::take(run);
        Self { begun: first.at, samples: VecDeque::from([first]) }
    }

    /// Looks once more, and says how far the run is.
    pub fn status(&mut self, run: &Run, forecast: &Forecast) -> Status {
        let now = Sample::take(run);
        let old = |sample: &Sample| (now.at - sample.at).as_secs_f64() > WINDOW_SECONDS;
        // One sample at or beyond the window's edge is kept as its beginning.
        while self.samples.get(1).is_some_and(old) {
            self.samples.pop_front();
        }
        let first = self.samples.front().unwrap_or(&now);
        let status = between((run, forecast), first, &now, (now.at - self.begun).as_secs_f64());
        self.samples.push_back(now);
        status
    }
}

fn between(
    (run, forecast): (&Run, &Forecast),
    first: &Sample,
    now: &Sample,
    seconds_elapsed: f64,
) -> Status {
    let wall_seconds = (now.at - first.at).as_secs_f64().max(1e-3);
    let rate = |later: u64, earlier: u64| later.saturating_sub(earlier) as f64 / wall_seconds;
    let all = [&run.items_expected, &run.bytes_expected].map(|of| of.load(Ordering::Relaxed));
    // Where there is more than was expected, nobody knows how much more.
    let is_known = now.items <= all[0] && now.bytes <= all[1];
    let [items_expected, bytes_expected] = all.map(|of| Some(of).filter(|&of| is_known && of > 0));
    // The slower of the two says how far it is: a few huge files, or very many tiny ones.
    let share = |done: u64, of: Option<u64>| of.map(|of| (done as f64 / of as f64).min(1.0));
    let done = [share(now.items, items_expected), share(now.bytes, bytes_expected)];
    let done = done.into_iter().flatten().reduce(f64::min);
    let all = (items_expected.unwrap_or(0), bytes_expected.unwrap_or(0));
    let new = run.expects_new.load(Ordering::Relaxed);
    let left = forecast.left((now.items, now.bytes), all, seconds_elapsed, new);
    let (limited_by, own_limit) = limit(first, now, wall_seconds);
    Status {
        seconds_elapsed,
        items_done: now.items,
        bytes_done: now.bytes,
        items_expected,
        bytes_expected,
        items_per_second: rate(now.items, first.items),
        bytes_per_second: rate(now.bytes, first.bytes),
        percent_done: done.map(|done| (100.0 * done).min(MOST_PERCENT)),
        seconds_remaining: left.map(|left| left.seconds.max(LEAST_SECONDS_LEFT)),
        seconds_plus_minus: left.map(|left| left.plus_minus_seconds),
        limited_by,
        own_limit,
        problems: run.problem_count(),
    }
}

/// The layer that limited what happened between the two samples, and whether that was the limit on sending
/// that was set.
fn limit(first: &Sample, now: &Sample, wall_seconds: f64) -> (Layer, bool) {
    let stages = now.stages.iter().zip(&first.stages);
    let stages = stages.filter(|(now, first)| now.name == first.name && now.layer == first.layer);
    let stages = stages.map(|(now, first)| now.since(first)).collect();
    let items = now.items.saturating_sub(first.items);
    let bytes = now.bytes.saturating_sub(first.bytes);
    let usage = now.usage.since(&first.usage);
    let verdict = judge(items, bytes, wall_seconds, stages, &usage);
    (verdict.limited_by, is_own_limit(&verdict, &usage))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_status_says_how_far_it_is_by_the_slower_of_items_and_bytes() {
        let run = Run::new();
        run.expect(100, 1_000, true);
        let first = Sample::take(&run);
        run.advance(50, 250);
        let now = Sample { at: first.at + Duration::from_secs(2), ..Sample::take(&run) };
        let status = between((&run, &Forecast::typical()), &first, &now, 2.0);
        assert_eq!(status.percent_done, Some(25.0));
        assert_eq!(status.items_per_second, 25.0);
        assert!(status.seconds_remaining > Some(0.0), "{status:?}");
        let words = status.words(200);
        assert!(words.starts_with("[###-----------]  25 %  125 B/s  "), "{words}");
        assert!(words.ends_with("  50 of 100 items, 250 B of 1.0 kB  25 items/s"), "{words}");
    }

    #[test]
    fn a_narrow_terminal_loses_what_matters_least_and_no_part_of_a_word() {
        let status = Status {
            seconds_elapsed: 70.0,
            items_done: 1_234,
            bytes_done: 5_000_000_000,
            items_expected: Some(20_000),
            bytes_expected: Some(20_000_000_000),
            items_per_second: 20.0,
            bytes_per_second: 112_300_000.0,
            percent_done: Some(25.0),
            seconds_remaining: Some(130.0),
            seconds_plus_minus: Some(20.0),
            limited_by: Layer::Network,
            own_limit: false,
            problems: 0,
        };
        let whole =
            "[###-----------]  25 %  112.3 MB/s  2 min 10 s left ± 20 s  limited by network";
        assert_eq!(status.words(80), whole);
        assert_eq!(status.words(60), whole.strip_suffix("  limited by network").unwrap());
        assert_eq!(status.words(24), "[###-----------]  25 %");
        let wide = status.words(140);
        assert!(wide.ends_with("network  1,234 of 20,000 items, 5.00 GB of 20.00 GB  20 items/s"));
        let unknown = Status { percent_done: None, items_expected: None, ..status };
        assert!(
            unknown
                .words(80)
                .starts_with("1 min 10 s  1,234 items, 5.00 GB of 20.00 GB  112.3 MB/s")
        );
    }

    #[test]
    fn a_run_that_goes_on_is_never_said_to_be_done() {
        let run = Run::new();
        run.expect(100, 1_000, true);
        run.advance(100, 1_000);
        let first = Sample::take(&run);
        let now = Sample { at: first.at + Duration::from_secs(2), ..Sample::take(&run) };
        let status = between((&run, &Forecast::typical()), &first, &now, 20.0);
        assert_eq!((status.percent_done, status.seconds_remaining), (Some(99.9), Some(1.0)));
        assert!(status.words(80).contains("  1 s left ± "), "{}", status.words(80));
    }

    #[test]
    fn more_than_was_expected_is_no_run_that_is_about_to_end() {
        let run = Run::new();
        run.expect(100, 1_000, false);
        let first = Sample::take(&run);
        run.advance(50, 1_001);
        let now = Sample { at: first.at + Duration::from_secs(2), ..Sample::take(&run) };
        let status = between((&run, &Forecast::typical()), &first, &now, 2.0);
        assert_eq!((status.items_expected, status.percent_done), (None, None));
        assert!(status.seconds_remaining.is_none() && status.bytes_expected.is_none());
    }

    #[test]
    fn without_an_expectation_there_is_no_percentage() {
        let run = Run::new();
        let first = Sample::take(&run);
        let status = between((&run, &Forecast::typical()), &first, &Sample::take(&run), 0.0);
        let json = serde_json::to_value(&status).unwrap();
        assert_eq!((json.get("percent_done"), json.get("seconds_remaining")), (None, None));
        assert_eq!(json["limited_by"], "nothing");
    }
}
