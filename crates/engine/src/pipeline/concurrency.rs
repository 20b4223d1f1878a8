//! How many threads of a stage take part, decided while it runs.
//!
//! All threads of the stage are there from the beginning; those that storage gains nothing from stand
//! aside between two pieces of work, and never hold one. Work is looked at in windows of some tenths of
//! a second. More threads are tried only where the stage is what the others wait for, and leaves the
//! processor idle meanwhile: where cores are what is short, more threads only get in each other's way.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use holdall_meter::StageMeter;
use holdall_sys::cpu::process_cpu_seconds;

use crate::pipeline::hill_climb::{HillClimb, Window};
use crate::run::{add_bytes, lock};

/// How often threads look whether a window is over.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// The least time that is looked at together.
const WINDOW: Duration = Duration::from_millis(200);
/// The most, however little was done in it.
const LONGEST_WINDOW: Duration = Duration::from_secs(5);
/// What each thread has to do in a window.
const ITEMS_PER_THREAD: u64 = 4;
/// An item costs as much as reading so many bytes: a few round trips or a seek.
const ITEM_BYTES: u64 = 512 << 10;
/// A stage that works for less of its threads' time waits for others, and not for storage.
const BUSY: f64 = 0.7;
/// Where the process uses more of its cores, processor is what is short.
const IDLE_CORES: f64 = 0.6;

/// The threads of one stage, and how many of them take part.
pub(crate) struct Concurrency<'a> {
    /// What the threads count their time with; the first counts the storage.
    meters: &'a [&'a StageMeter],
    cores: f64,
    begun: Instant,
    /// Work done since the beginning, in bytes.
    done_bytes: AtomicU64,
    /// When to look again, after the beginning.
    look_nanos: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    climb: HillClimb,
    /// Threads that do not stand aside.
    at_work: usize,
    closed: bool,
    /// Who was just called has not done anything yet, so the window only begins.
    settling: bool,
    window: Opened,
    /// Seconds for which threads were to take part, up to the window.
    thread_seconds: f64,
}

/// How things stood when a window began.
struct Opened {
    at: Instant,
    done_bytes: u64,
    cpu_seconds: f64,
    working_seconds: f64,
    waiting_seconds: f64,
}

/// A thread of the stage. When the first ends, for whatever reason, nobody stands aside any more.
pub(crate) struct Member<'a> {
    concurrency: &'a Concurrency<'a>,
    number: usize,
}

impl<'a> Concurrency<'a> {
    /// Begins with `threads` of `most` threads, on a process that may use so many cores.
    pub(crate) fn new(
        meters: &'a [&'a StageMeter],
        threads: usize,
        most: usize,
        cores: usize,
    ) -> Self {
        let begun = Instant::now();
        let window = Opened {
            at: begun,
            done_bytes: 0,
            cpu_seconds: process_cpu_seconds(),
            working_seconds: 0.0,
            waiting_seconds: 0.0,
        };
        let climb = HillClimb::new(threads, most);
        let state = State {
            climb,
            at_work: most,
            closed: false,
            settling: false,
            window,
            thread_seconds: 0.0,
        };
        Self {
            meters,
            cores: cores as f64,
            begun,
            done_bytes: AtomicU64::new(0),
            look_nanos: AtomicU64::new(LOOK_EVERY.as_nanos() as u64),
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// The thread of that number, from 0.
    pub(crate) fn member(&'a self, number: usize) -> Member<'a> {
        Member { concurrency: self, number }
    }

    /// Counts work that was done, and looks at it when it is time.
    pub(crate) fn did(&self, items: u64, bytes: u64) {
        let done = items.saturating_mul(ITEM_BYTES).saturating_add(bytes);
        add_bytes(&self.done_bytes, done);
        let now = self.begun.elapsed().as_nanos() as u64;
        if now < self.look_nanos.load(Ordering::Relaxed) {
            return;
        }
        // Who finds another looking has nothing to add.
        if let Ok(mut state) = self.state.try_lock() {
            self.look_nanos.store(now + LOOK_EVERY.as_nanos() as u64, Ordering::Relaxed);
            self.look(&mut state);
        }
    }

    fn look(&self, state: &mut State) {
        // Until all who are to stand aside do, the window says nothing.
        let wanted = state.climb.threads();
        if state.at_work > wanted {
            return;
        }
        let opened = self.open();
        let seconds = (opened.at - state.window.at).as_secs_f64();
        let done = opened.done_bytes - state.window.done_bytes;
        let each = done / ITEM_BYTES / wanted as u64;
        let is_over = match state.settling {
            true => each >= 1,
            false => each >= ITEMS_PER_THREAD && seconds >= WINDOW.as_secs_f64(),
        };
        if !is_over && seconds < LONGEST_WINDOW.as_secs_f64() {
            return;
        }
        if !std::mem::take(&mut state.settling) {
            let is_storage = self.waits_for_storage(&state.window, &opened);
            state.climb.note(Window { rate: done as f64 / seconds, is_storage });
            state.settling = state.climb.threads() != wanted;
            self.changed.notify_all();
        }
        self.begin_window(state, opened, wanted);
    }

    /// How things stand now.
    fn open(&self) -> Opened {
        let times = self.meters.first().map(|meter| meter.snapshot());
        let waiting = times.as_ref().map_or(0.0, |t| t.waiting_in_seconds + t.waiting_out_seconds);
        Opened {
            at: Instant::now(),
            done_bytes: self.done_bytes.load(Ordering::Relaxed),
            cpu_seconds: process_cpu_seconds(),
            working_seconds: times.map_or(0.0, |t| t.working_seconds),
            waiting_seconds: waiting,
        }
    }

    /// Begins a window behind one in which `threads` were to take part.
    fn begin_window(&self, state: &mut State, opened: Opened, threads: usize) {
        state.thread_seconds += threads as f64 * (opened.at - state.window.at).as_secs_f64();
        state.window = opened;
        let seconds = (state.window.at - self.begun).as_secs_f64();
        let mean = (state.thread_seconds / seconds.max(1e-9)).round();
        self.meters.iter().for_each(|meter| meter.set_threads((mean as u32).max(1)));
    }

    fn waits_for_storage(&self, from: &Opened, to: &Opened) -> bool {
        let working = to.working_seconds - from.working_seconds;
        let waiting = to.waiting_seconds - from.waiting_seconds;
        let cores = (to.cpu_seconds - from.cpu_seconds) / (to.at - from.at).as_secs_f64();
        working >= BUSY * (working + waiting) && cores <= IDLE_CORES * self.cores
    }
}

impl Member<'_> {
    /// Counts work that was done.
    pub(crate) fn did(&self, items: u64, bytes: u64) {
        self.concurrency.did(items, bytes);
    }

    /// Returns when it is this thread's turn to take part; for good once the stage ends. Between two
    /// pieces of work only: a thread that stands aside must hold nothing that others wait for.
    pub(crate) fn take_part(&self) {
        let all = self.concurrency;
        let mut state = lock(&all.state);
        if state.closed || self.number < state.climb.threads() {
            return;
        }
        state.at_work -= 1;
        if state.at_work == state.climb.threads() {
            let threads = state.at_work;
            all.begin_window(&mut state, all.open(), threads);
        }
        while !state.closed && self.number >= state.climb.threads() {
            state = all.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        state.at_work += 1;
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        let all = self.concurrency;
        let mut state = lock(&all.state);
        if !state.closed {
            state.closed = true;
            let threads = state.climb.threads();
            all.begin_window(&mut state, all.open(), threads);
        }
        drop(state);
        all.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    use holdall_meter::Layer;

    use super::*;

    /// So many that other tests do not look like a processor that is used up.
    const CORES: usize = 1000;

    #[test]
    fn storage_that_takes_long_for_each_item_gets_more_threads() {
        let meter = StageMeter::new("read", Layer::SourceRead, 1);
        let meters = [&meter];
        let concurrency = Concurrency::new(&meters, 1, 8, CORES);
        let (at_work, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let begun = Instant::now();
        let done =
            || most.load(Ordering::Relaxed) == 8 || begun.elapsed() > Duration::from_secs(60);
        thread::scope(|scope| {
            for number in 0..8 {
                let member = concurrency.member(number);
                let (at_work, most, meter, done) = (&at_work, &most, &meter, &done);
                scope.spawn(move || {
                    while !done() {
                        member.take_part();
                        most.fetch_max(
                            1 + at_work.fetch_add(1, Ordering::Relaxed),
                            Ordering::Relaxed,
                        );
                        meter.working(|| thread::sleep(Duration::from_millis(5)));
                        at_work.fetch_sub(1, Ordering::Relaxed);
                        member.did(1, 0);
                    }
                });
            }
        });
        assert_eq!(most.into_inner(), 8);
        assert!((2..8).contains(&meter.snapshot().threads), "the mean of 1 and 8");
    }

    #[test]
    fn when_one_ends_nobody_stands_aside_any_more() {
        let meter = StageMeter::new("read", Layer::SourceRead, 1);
        let meters = [&meter];
        let concurrency = Concurrency::new(&meters, 1, 3, CORES);
        let panicked = thread::scope(|scope| {
            for number in [1, 2] {
                let member = concurrency.member(number);
                scope.spawn(move || member.take_part());
            }
            let first = concurrency.member(0);
            let first = scope.spawn(move || {
                first.take_part();
                panic!("as a mistake in the code would");
            });
            first.join().is_err()
        });
        assert!(panicked);
    }
}
