//! A meter that pipeline threads share without locks.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::{Layer, StageCounters};

/// Counts what the threads of one stage do with their time, without locks.
///
/// Each thread wraps what it does in [`working`](Self::working), [`waiting_in`](Self::waiting_in)
/// or [`waiting_out`](Self::waiting_out); the closures must not be nested, or time counts twice.
/// Time is counted when a closure ends, so a snapshot lacks what is going on at that moment.
#[derive(Debug)]
pub struct StageMeter {
    name: &'static str,
    layer: Layer,
    threads: AtomicU32,
    working_nanos: AtomicU64,
    waiting_in_nanos: AtomicU64,
    waiting_out_nanos: AtomicU64,
    busy: Busy,
}

impl StageMeter {
    /// A meter at zero for a stage of `threads` threads.
    pub fn new(name: &'static str, layer: Layer, threads: u32) -> Self {
        Self {
            name,
            layer,
            threads: AtomicU32::new(threads),
            working_nanos: AtomicU64::new(0),
            waiting_in_nanos: AtomicU64::new(0),
            waiting_out_nanos: AtomicU64::new(0),
            busy: Busy::new(),
        }
    }

    /// Says how many threads the stage had on average, where their number changes while it runs.
    pub fn set_threads(&self, threads: u32) {
        self.threads.store(threads, Ordering::Relaxed);
    }

    /// Runs `work` and counts its time as working.
    pub fn working<R>(&self, work: impl FnOnce() -> R) -> R {
        let _at_work = self.busy.enter();
        timed(&self.working_nanos, work)
    }

    /// Runs `wait`, which takes from the queue before this stage, and counts its time.
    pub fn waiting_in<R>(&self, wait: impl FnOnce() -> R) -> R {
        timed(&self.waiting_in_nanos, wait)
    }

    /// Runs `wait`, which puts into the queue after this stage, and counts its time.
    pub fn waiting_out<R>(&self, wait: impl FnOnce() -> R) -> R {
        timed(&self.waiting_out_nanos, wait)
    }

    /// Adds time spent working that was measured elsewhere, such as a server's report.
    pub fn add_working(&self, spent: Duration) {
        add(&self.working_nanos, spent);
    }

    /// Adds time spent waiting for input that was measured elsewhere.
    pub fn add_waiting_in(&self, spent: Duration) {
        add(&self.waiting_in_nanos, spent);
    }

    /// Adds time spent waiting for output that was measured elsewhere.
    pub fn add_waiting_out(&self, spent: Duration) {
        add(&self.waiting_out_nanos, spent);
    }

    /// What has been counted so far.
    pub fn snapshot(&self) -> StageCounters {
        let seconds = |counter: &AtomicU64| {
            Duration::from_nanos(counter.load(Ordering::Relaxed)).as_secs_f64()
        };
        StageCounters {
            working_seconds: seconds(&self.working_nanos),
            waiting_in_seconds: seconds(&self.waiting_in_nanos),
            waiting_out_seconds: seconds(&self.waiting_out_nanos),
            busy_seconds: self.busy.seconds(),
            ..StageCounters::new(self.name, self.layer, self.threads.load(Ordering::Relaxed))
        }
    }
}

/// The time in which at least one thread is at work.
#[derive(Debug)]
struct Busy {
    begun: Instant,
    /// How many threads are at work, in the lowest bits, and above them the microsecond since `begun` in
    /// which the first of these began: 2^48 of them are 8 years.
    at_work: AtomicU64,
    micros: AtomicU64,
}

/// The bits that count threads.
const THREAD_BITS: u32 = 16;
const ONE_THREAD: u64 = 1;
const ALL_THREADS: u64 = (1 << THREAD_BITS) - 1;

impl Busy {
    fn new() -> Self {
        Self { begun: Instant::now(), at_work: AtomicU64::new(0), micros: AtomicU64::new(0) }
    }

    /// One more thread is at work until what is returned goes, also when it panics.
    fn enter(&self) -> AtWork<'_> {
        let now = self.now_micros() << THREAD_BITS;
        let first_or_more = |state| {
            let is_first = state & ALL_THREADS == 0;
            Some(if is_first { now | ONE_THREAD } else { state + ONE_THREAD })
        };
        // A change that is always made does not fail.
        let _ = self.at_work.fetch_update(Ordering::Relaxed, Ordering::Relaxed, first_or_more);
        AtWork(self)
    }

    fn leave(&self) {
        let state = self.at_work.fetch_sub(ONE_THREAD, Ordering::Relaxed);
        if state & ALL_THREADS == ONE_THREAD {
            let spent = self.now_micros().saturating_sub(state >> THREAD_BITS);
            self.micros.fetch_add(spent, Ordering::Relaxed);
        }
    }

    fn now_micros(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Nothing where time at work is added up elsewhere.
    fn seconds(&self) -> Option<f64> {
        let micros = self.micros.load(Ordering::Relaxed);
        (micros > 0).then(|| Duration::from_micros(micros).as_secs_f64())
    }
}

/// A thread that is at work.
struct AtWork<'a>(&'a Busy);

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// Runs `f` and adds its time to `counter`, also when `f` panics or returns early.
fn timed<R>(counter: &AtomicU64, f: impl FnOnce() -> R) -> R {
    struct OnDrop<'a>(&'a AtomicU64, Instant);
    impl Drop for OnDrop<'_> {
        fn drop(&mut self) {
            add(self.0, self.1.elapsed());
        }
    }
    let _counted = OnDrop(counter, Instant::now());
    f()
}

fn add(counter: &AtomicU64, spent: Duration) {
    // 2^64 nanoseconds are 584 years: the conversion saturates only for nonsense.
    let nanos = u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX);
    counter.fetch_add(nanos, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_time_goes_to_its_own_counter() {
        let meter = StageMeter::new("send", Layer::Network, 3);
        meter.add_working(Duration::from_millis(1500));
        meter.add_waiting_in(Duration::from_millis(250));
        meter.add_waiting_out(Duration::from_millis(125));
        let counters = meter.snapshot();
        assert_eq!(counters.working_seconds, 1.5);
        assert_eq!(counters.waiting_in_seconds, 0.25);
        assert_eq!(counters.waiting_out_seconds, 0.125);
        assert_eq!((counters.layer, counters.threads), (Layer::Network, 3));
        meter.set_threads(5);
        assert_eq!(meter.snapshot().threads, 5);
    }

    #[test]
    fn time_in_which_several_threads_work_at_once_is_busy_once() {
        let meter = StageMeter::new("read", Layer::SourceRead, 2);
        let all_work = std::sync::Barrier::new(2);
        let work = || {
            all_work.wait();
            std::thread::sleep(Duration::from_millis(20));
            all_work.wait();
        };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| meter.working(work));
            }
        });
        let counters = meter.snapshot();
        let busy = counters.busy_seconds.unwrap();
        assert!(busy >= 0.02 && busy < 0.75 * counters.working_seconds, "{counters:?}");
        // Nobody works between the two.
        meter.working(|| std::thread::sleep(Duration::from_millis(5)));
        assert!(meter.snapshot().busy_seconds.unwrap() >= busy + 0.004);
    }

    #[test]
    fn a_closure_returns_its_value_and_its_time_is_counted_on_every_thread() {
        let meter = StageMeter::new("hash", Layer::ClientCpu, 2);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let sum: u64 = meter.working(|| (0..10_000u64).map(std::hint::black_box).sum());
                    assert_eq!(sum, 49_995_000);
                });
            }
        });
        let counters = meter.snapshot();
        assert!(counters.working_seconds > 0.0);
        assert_eq!(counters.waiting_in_seconds, 0.0);
    }
}
