//! A report with something of everything, for tests.

use holdall_meter::{Latency, Layer, StageCounters, Unit, Verdict};

use super::{Fact, Moment, Needs, Report, Rung};
use crate::Measurement;
use crate::storage_stack::{DeviceWork, Pattern};

/// A row with these figures.
pub(super) fn row(operation: &str, block_bytes: u64, bytes_per_second: f64) -> Measurement {
    Measurement {
        block_bytes: Some(block_bytes),
        queue_depth: Some(1),
        jobs: Some(1),
        direct: Some(true),
        bytes_per_second: Some(bytes_per_second),
        operations_per_second: Some(bytes_per_second / block_bytes as f64),
        latency_ns: Some(Latency { p50: 80_000, p90: 120_000, p99: 900_000, p99_9: 20_000_000 }),
        ..Measurement::new(operation, 1.5)
    }
}

/// What a disk did that had to write half as much again.
pub(super) fn device() -> DeviceWork {
    DeviceWork {
        operations: 1500,
        flushes: 250,
        bytes_read: 0,
        bytes_written: 1500 * 4096,
        bytes_for_each_asked: 1.5,
        bytes_for_each_operation: Some(4096),
        pattern: Some(Pattern::Scattered),
    }
}

/// A report with something of everything.
pub(super) fn report() -> Report {
    let mut report = Report::new("holdall lab disk /mnt/usb".into(), "2026-11-22T02:30:00Z".into());
    report.circumstances = vec![
        Fact::new("computer", "attic"),
        Fact::new("kernel", "Linux 6.12"),
        Fact::new("cache", "cold"),
    ];
    report.facts = vec![Fact::new("device", "USB disk <b>&\"quick\"</b>")];
    let mut no_latency = row("create", 4096, 2e6);
    (no_latency.block_bytes, no_latency.file_bytes, no_latency.latency_ns) =
        (None, Some(2048), None);
    let mut larger = no_latency.clone();
    (larger.file_bytes, larger.bytes_per_second) = (Some(200_000_000), Some(110e6));
    report.measurements = vec![
        row("sequential write", 1 << 20, 110e6),
        row("sequential write", 4096, 40e6),
        row("random read", 4096, 1.2e6),
        no_latency,
        larger,
    ];
    let rung = |name: &str, rate, reached| Rung {
        name: name.into(),
        bytes_per_second: Some(rate),
        items_per_second: Some(rate / 1e4),
        reached,
        used: (!reached).then_some(0.75),
        needs: (!reached).then_some(Needs::Plain),
        disturbed: false,
    };
    report.ladder = vec![
        rung("source read", 500e6, false),
        rung("wire", 117e6, false),
        rung("backup", 108e6, true),
    ];
    report.timeline = (0..20_u32)
        .map(|at| Moment {
            seconds: f64::from(at),
            bytes_per_second: 1e8 + 1e6 * f64::from(at),
            items_per_second: 500.0 - f64::from(at),
            cores: Some(1.5),
            server_cores: (at > 3).then_some(0.4),
        })
        .collect();
    report.verdicts = vec![Verdict {
        limited_by: Layer::Network,
        confidence: 0.9,
        achieved: 108e6,
        ceiling: 117e6,
        unit: Unit::BytesPerSecond,
        ratio: 0.92,
        explanation: "The network limited the run: send worked for 92 % of the 20.0 s.".into(),
        help: Layer::Network.help(None),
        by_distance: false,
        stages: vec![StageCounters {
            working_seconds: 18.4,
            waiting_in_seconds: 1.0,
            ..StageCounters::new("send", Layer::Network, 1)
        }],
    }];
    report.notes = vec!["=1+1 is no formula, and <script>alert(1)</script> no script".into()];
    report
}
