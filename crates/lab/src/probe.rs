//! Steps of somebody's work that are measured without being known.
//!
//! What a backup does with bytes is the engine's business. It hands over each step as a [`Probe`]:
//! something that can be begun on a thread and then done again and again on a sample of its own.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use holdall_meter::{LatencyCount, Moved, Probe, Step};
use holdall_sys::cpu::thread_cpu_seconds;

use crate::{LabError, Measurement, Stop};

/// What a probe gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Probed {
    /// Bytes that went in for each second; with several threads, of all together.
    pub measurement: Measurement,
    /// Bytes that came out for each that went in.
    pub output_ratio: f64,
}

/// What one thread did.
#[derive(Default)]
struct Tally {
    moved: Moved,
    goes: u64,
    cpu_seconds: f64,
    wall: Duration,
    latency: LatencyCount,
}

/// Does a probe's step on `threads` threads at once for at least `time`.
///
/// # Errors
/// [`LabError::Interrupted`].
pub fn measure_probe(
    probe: &Probe,
    threads: u32,
    time: Duration,
    stop: &Stop,
) -> Result<Probed, LabError> {
    let barrier = Barrier::new(threads as usize);
    let tallies: Vec<Tally> = thread::scope(|scope| {
        let start = |_| scope.spawn(|| work((probe.begin)(), &barrier, time, stop));
        let started: Vec<_> = (0..threads).map(start).collect();
        started.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    stop.check()?;
    let mut total = Tally::default();
    tallies.iter().for_each(|tally| total.add(tally));
    Ok(total.probed(probe, threads))
}

fn work(mut step: Step, barrier: &Barrier, time: Duration, stop: &Stop) -> Tally {
    // The first go fills buffers and caches.
    step();
    barrier.wait();
    let mut tally = Tally::default();
    let (started, cpu_before) = (Instant::now(), thread_cpu_seconds());
    while tally.goes == 0 || (started.elapsed() < time && !stop.is_wished()) {
        let begun = Instant::now();
        let moved = step();
        tally.latency.add(begun.elapsed());
        tally.moved.input_bytes += moved.input_bytes;
        tally.moved.output_bytes += moved.output_bytes;
        tally.goes += 1;
    }
    tally.cpu_seconds = thread_cpu_seconds() - cpu_before;
    tally.wall = started.elapsed();
    tally
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.moved.input_bytes += other.moved.input_bytes;
        self.moved.output_bytes += other.moved.output_bytes;
        self.goes += other.goes;
        self.cpu_seconds += other.cpu_seconds;
        self.wall = self.wall.max(other.wall);
        self.latency.merge(&other.latency);
    }

    fn probed(&self, probe: &Probe, threads: u32) -> Probed {
        let (seconds, bytes) = (self.wall.as_secs_f64(), self.moved.input_bytes as f64);
        let measurement = Measurement {
            jobs: Some(threads),
            bytes_per_second: Some(bytes / seconds.max(f64::MIN_POSITIVE)),
            operations_per_second: Some(self.goes as f64 / seconds.max(f64::MIN_POSITIVE)),
            bytes_per_core_second: Some(bytes / self.cpu_seconds.max(f64::MIN_POSITIVE)),
            latency_ns: self.latency.latency(),
            ..Measurement::new(probe.name.clone(), seconds)
        };
        Probed { measurement, output_ratio: self.moved.output_bytes as f64 / bytes.max(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn every_go_on_every_thread_is_counted_but_the_first() {
        let goes = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&goes);
        let begin = move || {
            let goes = Arc::clone(&counted);
            Box::new(move || {
                goes.fetch_add(1, Ordering::Relaxed);
                Moved { input_bytes: 10, output_bytes: 5 }
            }) as Step
        };
        let probe = Probe { name: "count".into(), sample: "text", begin: Box::new(begin) };
        let probed = measure_probe(&probe, 3, Duration::from_millis(5), &Stop::default()).unwrap();
        let row = &probed.measurement;
        let counted = row.operations_per_second.unwrap() * row.duration_seconds;
        assert_eq!(counted.round() as u64 + 3, goes.load(Ordering::Relaxed));
        assert_eq!((probed.output_ratio, row.jobs), (0.5, Some(3)));
        assert!(row.bytes_per_core_second > Some(0.0));
    }
}
