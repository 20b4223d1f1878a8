//! What a machine tells its server of a backup, so that the server's pages show it.
//!
//! A keeper must not be able to tell by it whether a file that it knows is stored. So no exact amount is in it: bytes
//! are rounded up as the sizes of blocks are, items to two digits, and how far the run was is told in shares of these.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use holdall_engine::{BackupSummary, Run};
use holdall_format::padded_len;
use holdall_meter::cost::Slowness;
use holdall_meter::{Layer, RunCurve, RunPoint, StageCounters, Verdict};
use holdall_protocol::wire::{LayerWork, ReportedKind, RunReport};
use holdall_sys::thread;

/// Parts of the whole in which the points of a curve are told.
const PARTS: u64 = 10_000;

/// Follows a run while `work` does it, and gives how far it was over its time.
pub fn followed<R>(run: &Run, work: impl FnOnce() -> R) -> (R, RunCurve) {
    let begun = Instant::now();
    let (done, ending) = channel::<()>();
    std::thread::scope(|scope| {
        let following = thread::start(scope, move || follow(run, begun, &ending));
        let result = work();
        drop(done);
        // Without another thread its end is all that is known.
        let followed = following.ok().and_then(|following| following.join().ok());
        let mut curve = followed.unwrap_or_default();
        curve.end(point(run, begun));
        (result, curve)
    })
}

fn follow(run: &Run, begun: Instant, ending: &Receiver<()>) -> RunCurve {
    let mut curve = RunCurve::new();
    let pause = |curve: &RunCurve| Duration::from_millis(curve.every_milliseconds());
    while ending.recv_timeout(pause(&curve)) == Err(RecvTimeoutError::Timeout) {
        curve.add(point(run, begun));
    }
    curve
}

fn point(run: &Run, begun: Instant) -> RunPoint {
    RunPoint {
        milliseconds: milliseconds(begun.elapsed().as_secs_f64()),
        bytes: run.bytes.load(Ordering::Relaxed),
        items: run.items.load(Ordering::Relaxed),
    }
}

/// What is told of a backup that committed a snapshot. When it began and how it ended is for the caller to add.
pub fn report_of_backup(
    summary: &BackupSummary,
    verdict: &Verdict,
    slowness: Option<&Slowness>,
    curve: &RunCurve,
) -> RunReport {
    let (bytes, items) = (rounded_bytes(summary.bytes), rounded_items(summary.items));
    RunReport {
        milliseconds: milliseconds(summary.seconds),
        items,
        bytes,
        sent_bytes: summary.bytes_sent,
        problems: summary.problems,
        limited_by: verdict.limited_by,
        usual_milliseconds: slowness.map(|slow| milliseconds(slow.usual_seconds)),
        work: work_by_layer(&summary.stages),
        points: in_shares(curve.points(), bytes, items),
        ..report_of_failure(0.0)
    }
}

/// What is told of a backup that committed nothing within so many seconds. When it began and how it ended is for the
/// caller to add.
pub fn report_of_failure(seconds: f64) -> RunReport {
    RunReport {
        kind: ReportedKind::Backup,
        started_ns: 0,
        milliseconds: milliseconds(seconds),
        exit_code: 0,
        items: 0,
        bytes: 0,
        sent_bytes: 0,
        problems: 0,
        limited_by: Layer::Nothing,
        usual_milliseconds: None,
        work: Vec::new(),
        points: Vec::new(),
        next_ns: None,
    }
}

fn milliseconds(seconds: f64) -> u64 {
    (1e3 * seconds).round() as u64
}

fn rounded_bytes(bytes: u64) -> u64 {
    match usize::try_from(bytes) {
        Ok(0) => 0,
        Ok(bytes) => padded_len(bytes) as u64,
        Err(_) => bytes,
    }
}

/// Rounds up to two digits.
fn rounded_items(items: u64) -> u64 {
    let unit = 10_u64.pow(items.checked_ilog10().unwrap_or(0).saturating_sub(1));
    items.div_ceil(unit).saturating_mul(unit)
}

/// The same course towards other ends, each point to a ten thousandth of these.
fn in_shares(points: &[RunPoint], bytes: u64, items: u64) -> Vec<RunPoint> {
    let end = points.last().copied().unwrap_or_default();
    let share = |part: u64, of: u64, whole: u64| {
        let parts = (PARTS as f64 * part as f64 / of.max(1) as f64) as u64;
        (whole as f64 * parts.min(PARTS) as f64 / PARTS as f64) as u64
    };
    let point = |point: &RunPoint| RunPoint {
        milliseconds: point.milliseconds,
        bytes: share(point.bytes, end.bytes, bytes),
        items: share(point.items, end.items, items),
    };
    points.iter().map(point).collect()
}

/// For how long the stages worked on each layer, those that worked longest first.
fn work_by_layer(stages: &[StageCounters]) -> Vec<LayerWork> {
    // What has no threads is no stage, but a time in which something was under way.
    let of = |layer: Layer| {
        let stages = stages.iter().filter(|stage| stage.layer == layer && stage.threads > 0);
        let seconds: f64 = stages.map(|stage| stage.working_seconds).sum();
        LayerWork { layer, milliseconds: milliseconds(seconds) }
    };
    let mut work: Vec<_> = Layer::ALL.map(of).into_iter().collect();
    work.retain(|work| work.milliseconds > 0);
    work.sort_by_key(|work| std::cmp::Reverse(work.milliseconds));
    work
}

#[cfg(test)]
mod tests {
    use holdall_protocol::wire::{decode_run_report, encode_run_report};

    use super::*;
    use crate::usage::{UsageCounters, judge};

    fn summary(bytes: u64, items: u64) -> BackupSummary {
        let stage = |name: &str, layer, threads, working_seconds| StageCounters {
            working_seconds,
            ..StageCounters::new(name, layer, threads)
        };
        let stages = vec![
            stage("read", Layer::SourceRead, 2, 1.5),
            stage("hash", Layer::ClientCpu, 2, 0.5),
            stage("seal", Layer::ClientCpu, 2, 2.0),
            stage("talk", Layer::Network, 0, 9.0),
        ];
        BackupSummary { bytes, items, seconds: 12.5, stages, ..BackupSummary::default() }
    }

    fn report(bytes: u64, items: u64, slowness: Option<&Slowness>) -> RunReport {
        let run = Run::new();
        let before = UsageCounters::now(&run);
        let ((), curve) = followed(&run, || run.advance(items, bytes));
        let usage = UsageCounters::now(&run).since(&before);
        let summary = summary(bytes, items);
        let verdict = judge(items, bytes, summary.seconds, summary.stages.clone(), &usage);
        report_of_backup(&summary, &verdict, slowness, &curve)
    }

    #[test]
    fn a_report_has_no_exact_amount_and_a_server_takes_it() {
        for (bytes, items) in [(0, 0), (1, 1), (4_321_234, 12_345), (u64::MAX >> 12, 1 << 40)] {
            let report = report(bytes, items, None);
            assert_eq!(decode_run_report(&encode_run_report(&report)).as_ref(), Ok(&report));
            let near = report.bytes >= bytes && report.bytes <= bytes + bytes / 8 + 4096;
            assert!(near && (items..=items + items / 10).contains(&report.items), "{report:?}");
            let last = report.points.last().unwrap();
            assert_eq!((last.bytes, last.items), (report.bytes, report.items));
            assert_eq!(report.points[0], RunPoint::default());
        }
        let [one, other] = [4_321_234, 4_321_235].map(|bytes| report(bytes, 12_345, None));
        assert_eq!((one.bytes, one.items), (other.bytes, other.items));
        assert_eq!((one.items, rounded_items(99), rounded_items(101)), (13_000, 99, 110));
    }

    #[test]
    fn the_course_of_a_run_is_told_in_shares_of_what_it_came_to() {
        let point = |milliseconds, bytes, items| RunPoint { milliseconds, bytes, items };
        let points = [point(0, 0, 0), point(10, 123_457, 0), point(20, 1_000_003, 3)];
        let told = in_shares(&points, 2_000_000, 10);
        assert_eq!(told, [point(0, 0, 0), point(10, 246_800, 0), point(20, 2_000_000, 10)]);
    }

    #[test]
    fn work_is_added_up_by_layer_and_slowness_says_what_is_usual() {
        let slow = Slowness {
            times: 2.5,
            usual_seconds: 5.0,
            runs: 1,
            since_ns: 1,
            usual_until_ns: 0,
            stage: None,
        };
        let report = report(10, 10, Some(&slow));
        let work: Vec<_> = report.work.iter().map(|work| (work.layer, work.milliseconds)).collect();
        assert_eq!(work, [(Layer::ClientCpu, 2500), (Layer::SourceRead, 1500)]);
        assert_eq!((report.milliseconds, report.usual_milliseconds), (12_500, Some(5000)));
    }

    #[test]
    fn a_failure_has_nothing_but_its_time() {
        let report = report_of_failure(1.5);
        assert_eq!((report.milliseconds, report.items, report.points.len()), (1500, 0, 0));
        assert!(decode_run_report(&encode_run_report(&report)).is_ok());
    }
}
