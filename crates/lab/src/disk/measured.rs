//! What a row gave.

use std::time::Duration;

use holdall_meter::Latency;
use serde::{Deserialize, Serialize};

use super::row::Row;
use crate::Measurement;
use crate::cache::Cache;
use crate::storage_stack::{DeviceCounters, DeviceWork, DirectAccess};

/// How requests were handed to the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// One system call after the other: `pread` and `pwrite`.
    Calls,
    /// A ring shared with the kernel.
    #[serde(rename = "io_uring")]
    IoUring,
    /// A thread for each request under way, where there is no `io_uring`.
    Threads,
}

impl Engine {
    /// As a table calls it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::IoUring => "io_uring",
            Self::Threads => "threads",
        }
    }
}

/// What a row gave.
#[derive(Debug, Clone)]
pub struct Measured {
    /// What was asked, but for `direct` and `end_fsync`, which say what was done.
    pub row: Row,
    /// Whether it was to go around the page cache, and the file system refuses that. Then it went
    /// through the cache, and a write ended with an fsync.
    pub direct_refused: bool,
    /// What the file system made of direct access, if it took it and that is less than it says. Then
    /// a write ended with an fsync.
    pub direct_in_doubt: Option<DirectAccess>,
    /// How requests were handed over.
    pub engine: Engine,
    /// Where a read's bytes came from; `None` of a write.
    pub cache: Option<Cache>,
    /// Requests that were answered.
    pub operations: u64,
    /// Bytes that were moved.
    pub bytes: u64,
    /// From the first request to the end of the last, and of the fsync.
    pub duration: Duration,
    /// How long requests took.
    pub latency: Option<Latency>,
}

impl Measured {
    /// The row as every measurement is told.
    pub fn measurement(&self) -> Measurement {
        let seconds = self.duration.as_secs_f64();
        let rate = |amount: u64| (seconds > 0.0).then(|| amount as f64 / seconds);
        Measurement {
            block_bytes: Some(self.row.block_bytes),
            file_bytes: Some(self.row.file_bytes),
            queue_depth: Some(self.row.queue_depth),
            jobs: Some(self.row.jobs),
            direct: Some(self.row.direct),
            end_fsync: Some(self.row.end_fsync),
            bytes_per_second: rate(self.bytes),
            operations_per_second: rate(self.operations),
            latency_ns: self.latency,
            cache: self.cache,
            ..Measurement::new(self.row.access.words(), seconds)
        }
    }
}

/// One row for several of the same access, the smallest first: all bytes over all time, and what the disks counted
/// meanwhile; `None` of none.
pub fn average(all: &[Measured], disks: Option<&DeviceCounters>) -> Option<Measurement> {
    let (first, last) = (all.first()?, all.last()?);
    let mebibytes = |measured: &Measured| measured.row.block_bytes >> 20;
    let sizes = match (mebibytes(first), mebibytes(last)) {
        (only, last) if only == last => format!("{only} MiB"),
        (first, last) => format!("{first} to {last} MiB"),
    };
    let seconds: f64 = all.iter().map(|one| one.duration.as_secs_f64()).sum();
    let bytes: u64 = all.iter().map(|one| one.bytes).sum();
    let device = |disks| DeviceWork::new(disks, bytes, first.row.block_bytes, false);
    Some(Measurement {
        operation: format!("{}, average of {sizes}", first.row.access.words()),
        block_bytes: None,
        file_bytes: None,
        duration_seconds: seconds,
        bytes_per_second: (seconds > 0.0).then(|| bytes as f64 / seconds),
        operations_per_second: (seconds > 0.0).then(|| all.len() as f64 / seconds),
        latency_ns: None,
        device: disks.map(device),
        ..first.measurement()
    })
}
