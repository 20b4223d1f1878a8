//! What a row gave.

use std::path::Path;
use std::time::Duration;

use holdall_sys::{disk, process};
use serde::{Deserialize, Serialize};

use super::row::Row;
use crate::ground::DirectAccess;
use crate::{Latency, Measurement};

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

/// Where the bytes of a read came from, by what the system counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cache {
    /// The page cache was gone around.
    #[serde(rename = "direct")]
    Direct,
    /// Most of it came from the disk.
    #[serde(rename = "cold")]
    Cold,
    /// A part of it came from the disk.
    #[serde(rename = "partly warm")]
    PartlyWarm,
    /// Hardly anything came from the disk.
    #[serde(rename = "warm")]
    Warm,
    /// The system does not count for this file system, or for anyone.
    #[serde(rename = "unknown")]
    Unknown,
}

impl Cache {
    /// As a table calls it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Cold => "cold",
            Self::PartlyWarm => "partly warm",
            Self::Warm => "warm",
            Self::Unknown => "unknown",
        }
    }

    /// Of a read that was to go around the page cache, on a file system that took that.
    pub(super) fn of_direct_read(access: DirectAccess) -> Self {
        match access {
            DirectAccess::Around => Self::Direct,
            DirectAccess::MayCache => Self::Unknown,
            DirectAccess::InMemory => Self::Warm,
        }
    }

    /// Of `bytes` that were read in `folder` through the cache, since this process had made the system read
    /// `before` from disks. A share's bytes come over the network, and are not counted.
    pub(crate) fn of_read_in(folder: &Path, bytes: u64, before: Option<u64>) -> Self {
        let read = process::bytes_read_from_disks().zip(before).map(|(now, then)| now - then);
        let is_share = disk::file_system(folder).is_ok_and(disk::is_share);
        Self::of(bytes, read.filter(|&read| read > 0 || !is_share))
    }

    /// Of a read through the cache of `asked` bytes, of which `from_disk` were counted as read from a
    /// disk. What the system reads ahead may make that more than was asked.
    pub(crate) fn of(asked: u64, from_disk: Option<u64>) -> Self {
        match from_disk {
            None => Self::Unknown,
            Some(read) if read <= asked / 20 => Self::Warm,
            Some(read) if read >= asked / 5 * 4 => Self::Cold,
            Some(_) => Self::PartlyWarm,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cold_is_what_came_from_the_disk() {
        let of = |from_disk| Cache::of(1000, from_disk);
        assert_eq!([of(None), of(Some(50))], [Cache::Unknown, Cache::Warm]);
        assert_eq!([of(Some(500)), of(Some(800))], [Cache::PartlyWarm, Cache::Cold]);
        assert_eq!(of(Some(1200)), Cache::Cold);
    }
}
