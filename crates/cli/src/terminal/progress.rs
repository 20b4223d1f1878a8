//! Watching a run: a bar on a terminal, `status` lines with `--json`, nothing elsewhere.
//!
//! The run itself knows nothing of this: it counts, and a thread here looks at the counters.

use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use holdall_diagnosis::{Forecast, Recent, Status};
use holdall_engine::Run;
use holdall_meter::{self as meter, fitting, whole_duration};
use holdall_sys::thread;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::terminal::output::{Output, size};
use crate::terminal::wrapped::columns_of;

/// How often the bar is drawn anew.
const BAR_PERIOD: Duration = Duration::from_millis(250);
/// How often a status line is printed.
const LINE_PERIOD: Duration = Duration::from_secs(1);
/// A run that expects nothing after so long is counted ahead. Counting takes processor from the run, and
/// one that is over in a few seconds needs no estimate.
const COUNT_AFTER: Duration = Duration::from_secs(3);

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
    let bar = output.is_for_a_person();
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
        let bar = output.is_for_a_person().then(new_bar);
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
            bar.set_message(self.words(seconds_elapsed, bytes_done, bytes_expected));
        }
        // The command itself finds out that nobody reads any more.
        let _ = self.output.object("status", &Line { seconds_elapsed, bytes_done, bytes_expected });
    }

    fn words(&self, seconds: f64, bytes_done: u64, bytes_expected: Option<u64>) -> String {
        let rate = bytes_done as f64 / seconds.max(1e-3);
        let done = match bytes_expected.filter(|&of| of >= bytes_done && of > 0) {
            Some(of) => {
                let share = bytes_done as f64 / of as f64;
                let left = whole_duration(((of - bytes_done) as f64 / rate.max(1.0)).ceil());
                vec![
                    format!("{} {:3.0} %", meter::bar(share), share * 100.0),
                    format!("{}/s", size(rate as u64)),
                    format!("{left} left"),
                    format!("{} of {}", size(bytes_done), size(of)),
                ]
            }
            None => vec![size(bytes_done), format!("{}/s", size(rate as u64))],
        };
        fitting([self.what.to_owned()].into_iter().chain(done), columns())
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Says on a terminal which of several measurements goes on, and how long the others take, more or less.
pub(crate) struct Steps {
    is_shown: bool,
    done: usize,
    all: usize,
    begun: Instant,
}

impl Steps {
    /// So many are to come.
    pub(crate) fn of(output: &Output, all: usize) -> Self {
        let is_shown = all > 0 && !output.json && !output.quiet && io::stderr().is_terminal();
        Self { is_shown, done: 0, all, begun: Instant::now() }
    }

    /// One goes on.
    pub(crate) fn show(&self, what: &str) {
        if self.is_shown && self.done < self.all {
            let words = step_words(what, (self.done, self.all), self.begun.elapsed());
            let line: String = words.chars().take(columns().saturating_sub(1)).collect();
            // If the terminal does not take it, nothing is lost.
            let _ = write!(io::stderr(), "\r\x1b[K{line}");
        }
    }

    /// It is over, and will be told of.
    pub(crate) fn end(&mut self) {
        self.done += 1;
        self.clear();
    }

    fn clear(&self) {
        if self.is_shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        self.clear();
    }
}

/// `row 12 of 41: random read, about 40 s left`: those to come take as long as those that are done did on average.
fn step_words(what: &str, (done, all): (usize, usize), elapsed: Duration) -> String {
    let name = if what.is_empty() { String::new() } else { format!(": {what}") };
    let left = match done {
        // The first says little.
        0 | 1 => String::new(),
        _ => {
            let each = elapsed.as_secs_f64() / done as f64;
            format!(", about {} left", whole_duration(each * all.saturating_sub(done) as f64))
        }
    };
    format!("row {} of {all}{name}{left}", done + 1)
}

/// The width of the terminal on standard error.
fn columns() -> usize {
    columns_of(io::stderr()).map_or(80, |columns| columns.max(20))
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
    watch((run, forecast), ending, BAR_PERIOD, |status| bar.set_message(status.words(columns())));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_says_how_far_it_is_and_how_long_it_takes() {
        let after =
            |done, seconds| step_words("random read", (done, 41), Duration::from_secs(seconds));
        assert_eq!(after(0, 0), "row 1 of 41: random read");
        assert_eq!(after(11, 11), "row 12 of 41: random read, about 30 s left");
        assert_eq!(
            step_words("", (2, 4), Duration::from_secs(90)),
            "row 3 of 4, about 1 min 30 s left"
        );
    }
}
