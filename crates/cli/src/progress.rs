//! Watching a run: a bar on a terminal, `status` lines with `--json`, nothing elsewhere.
//!
//! The run itself knows nothing of this: it counts, and a thread here looks at the counters.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use holdall_engine::Run;
use holdall_meter::{Layer, StageCounters};
use holdall_sys::thread;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::forecast::Forecast;
use crate::output::{Output, count, size, whole_duration};
use crate::verdict::{self, UsageCounters};

/// How often the bar is drawn anew.
const BAR_PERIOD: Duration = Duration::from_millis(250);
/// How often a status line is printed.
const LINE_PERIOD: Duration = Duration::from_secs(1);
/// A run that expects nothing after so long is counted ahead. Counting takes processor from the run, and
/// one that is over in a few seconds needs no estimate.
const COUNT_AFTER: Duration = Duration::from_secs(8);
/// Rates, and the layer that limits now, are those of this many seconds.
const WINDOW_SECONDS: f64 = 3.0;
/// A run that goes on is not done, however much of it is: what is left is to commit it.
const MOST_PERCENT: f64 = 99.9;
const LEAST_SECONDS_LEFT: f64 = 1.0;

/// Runs `work` while its counters are shown; `forecast` is asked for only where they are.
pub(crate) fn watched<R>(
    output: &Output,
    run: &Run,
    forecast: impl FnOnce() -> Forecast + Send,
    work: impl FnOnce() -> R,
) -> R {
    counted_ahead(output, run, forecast, |_| (), work)
}

/// The same, and what is to be expected is counted by `count` where the run does not know it by itself.
/// The run that `count` is given says when it is to stop.
pub(crate) fn counted_ahead<R>(
    output: &Output,
    run: &Run,
    forecast: impl FnOnce() -> Forecast + Send,
    count: impl FnOnce(&Run) + Send,
    work: impl FnOnce() -> R,
) -> R {
    let bar = !output.json && !output.quiet && io::stderr().is_terminal();
    if !bar && !output.json {
        return work();
    }
    let counting = &Run::new();
    let ((done, ending), (over, goes_on)) = (channel::<()>(), channel::<()>());
    std::thread::scope(|scope| {
        // What no thread shows or counts is not shown or counted, and the work is done.
        let _ = thread::start(scope, move || match bar {
            true => draw(run, &forecast(), &ending),
            false => print(output, run, &forecast(), &ending),
        });
        let _ = thread::start(scope, move || {
            let is_over = goes_on.recv_timeout(COUNT_AFTER) != Err(RecvTimeoutError::Timeout);
            if !is_over && run.items_expected.load(Ordering::Relaxed) == 0 {
                count(counting);
            }
        });
        let result = work();
        counting.stop();
        drop((done, over));
        result
    })
}

/// Shows the progress of something that only knows bytes; told of it, where [`watched`] looks.
pub(crate) struct Meter<'a> {
    output: &'a Output,
    what: &'static str,
    bar: Option<ProgressBar>,
    begun: Instant,
    shown: Cell<Option<Instant>>,
}

impl<'a> Meter<'a> {
    /// Nothing was done yet.
    pub(crate) fn begin(output: &'a Output, what: &'static str) -> Self {
        let bar = (!output.json && !output.quiet && io::stderr().is_terminal()).then(new_bar);
        Self { output, what, bar, begun: Instant::now(), shown: Cell::new(None) }
    }

    /// So much was done, and so much is to be done where that is known.
    pub(crate) fn show(&self, bytes_done: u64, bytes_expected: Option<u64>) {
        #[derive(Serialize)]
        struct Line {
            seconds_elapsed: f64,
            bytes_done: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            bytes_expected: Option<u64>,
        }
        let period = if self.bar.is_some() { BAR_PERIOD } else { LINE_PERIOD };
        if self.shown.get().unwrap_or(self.begun).elapsed() < period {
            return;
        }
        self.shown.set(Some(Instant::now()));
        let seconds_elapsed = self.begun.elapsed().as_secs_f64();
        if let Some(bar) = &self.bar {
            let of = bytes_expected.map(|of| format!(" of {}", size(of))).unwrap_or_default();
            let rate = size((bytes_done as f64 / seconds_elapsed) as u64);
            let (what, done) = (self.what, size(bytes_done));
            bar.set_message(format!("{what}  {done}{of}, {rate}/s"));
        }
        // The command itself finds out that nobody reads any more.
        let _ = self.output.object("status", &Line { seconds_elapsed, bytes_done, bytes_expected });
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn new_bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
        bar.set_style(style);
    }
    bar
}

fn draw(run: &Run, forecast: &Forecast, ending: &Receiver<()>) {
    let bar = new_bar();
    watch((run, forecast), ending, BAR_PERIOD, |status| bar.set_message(status.words()));
    bar.finish_and_clear();
}

fn print(output: &Output, run: &Run, forecast: &Forecast, ending: &Receiver<()>) {
    watch((run, forecast), ending, LINE_PERIOD, |status| {
        // The command itself finds out that nobody reads any more.
        let _ = output.object("status", status);
    });
}

/// Shows the run's state every `period` until the sender of `ending` is gone.
fn watch(
    (run, forecast): (&Run, &Forecast),
    ending: &Receiver<()>,
    period: Duration,
    mut show: impl FnMut(&Status),
) {
    let mut recent = Recent::begin(run);
    // The first one says that it has begun.
    show(&recent.status(run, forecast));
    while ending.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
        show(&recent.status(run, forecast));
    }
}

/// How far a run is.
#[derive(Debug, Serialize)]
struct Status {
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
    fn words(&self) -> String {
        let of = |expected: Option<u64>, show: fn(u64) -> String| {
            expected.map(|expected| format!(" of {}", show(expected))).unwrap_or_default()
        };
        let mut words = format!(
            "{}  {}{} items, {}{}, {} items/s, {}/s",
            whole_duration(self.seconds_elapsed.floor()),
            count(self.items_done),
            of(self.items_expected, count),
            size(self.bytes_done),
            of(self.bytes_expected, size),
            count(self.items_per_second as u64),
            size(self.bytes_per_second as u64),
        );
        if let (Some(seconds), Some(plus_minus)) = (self.seconds_remaining, self.seconds_plus_minus)
        {
            let (left, about) = (whole_duration(seconds.ceil()), whole_duration(plus_minus.ceil()));
            words += &format!(", about {left} left, ± {about}");
        }
        if self.own_limit {
            words += ", held back by --limit-upload";
        } else if !matches!(self.limited_by, Layer::Nothing | Layer::Unsure) {
            words += &format!(", held back by {}", self.limited_by);
        }
        words
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
            usage: UsageCounters::now(),
            stages: run.stages(),
        }
    }
}

/// The samples of the last seconds.
struct Recent {
    begun: Instant,
    samples: VecDeque<Sample>,
}

impl Recent {
    fn begin(run: &Run) -> Self {
        let first = Sample::take(run);
        Self { begun: first.at, samples: VecDeque::from([first]) }
    }

    fn status(&mut self, run: &Run, forecast: &Forecast) -> Status {
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
    let verdict = verdict::judge(items, bytes, wall_seconds, stages, &usage);
    (verdict.limited_by, verdict::is_own_limit(&verdict, &usage))
}

#[cfg(test)]
mod tests {
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
        assert!(status.words().contains("50 of 100 items, 250 B of 1.0 kB, 25 items/s"));
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
        assert!(status.words().contains("about 1 s left"), "{}", status.words());
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
