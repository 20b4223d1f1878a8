//! One measured row: what was done, how, and how fast it was.

use holdall_meter::{Latency, Layer};
use serde::{Deserialize, Serialize};

use crate::cache::Cache;
use crate::storage_stack::DeviceWork;

/// One row of a report, with the fields that every measurement of the lab has.
///
/// A setting that means nothing for an operation (the queue depth of a rename) is `None`, and
/// `null` in JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// What was done, in words: `sequential write`, `random read`, `create`, `send`.
    pub operation: String,
    /// Bytes of each request.
    pub block_bytes: Option<u64>,
    /// Bytes of each file.
    pub file_bytes: Option<u64>,
    /// Requests under way at once, for each job.
    pub queue_depth: Option<u32>,
    /// Threads, processes or streams.
    pub jobs: Option<u32>,
    /// Whether the page cache was gone around.
    pub direct: Option<bool>,
    /// Whether the time includes a final fsync.
    pub end_fsync: Option<bool>,
    /// Seconds from the first request to the end of the last.
    pub duration_seconds: f64,
    /// Bytes moved for each second.
    pub bytes_per_second: Option<f64>,
    /// Requests or items done for each second.
    pub operations_per_second: Option<f64>,
    /// Bytes moved for each second that a core worked on it, whatever else it did meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_core_second: Option<f64>,
    /// How long single requests took.
    pub latency_ns: Option<Latency>,
    /// Where the bytes of a read came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
    /// What others call such a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_as: Option<String>,
    /// What the disks did meanwhile, for other programs too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceWork>,
    /// Files, directories and links that it was done with, counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<u64>,
    /// Segments that were sent again meanwhile, by all connections of the computers that sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// What held it back, of a backup or a restore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<Layer>,
}

impl Measurement {
    /// Something that took so many seconds, with no figures yet.
    pub fn new(operation: impl Into<String>, duration_seconds: f64) -> Self {
        Self {
            operation: operation.into(),
            block_bytes: None,
            file_bytes: None,
            queue_depth: None,
            jobs: None,
            direct: None,
            end_fsync: None,
            duration_seconds,
            bytes_per_second: None,
            operations_per_second: None,
            bytes_per_core_second: None,
            latency_ns: None,
            cache: None,
            known_as: None,
            device: None,
            items: None,
            retransmits: None,
            limited_by: None,
        }
    }
}
