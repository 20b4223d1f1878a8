//! The server's own lab: what the disk does that the repositories lie on, and its network, measured by the server itself.
//!
//! A page begins it, so it is bounded: so many bytes at most, and no more than a tenth of what is free; one at a time; none
//! while a machine stores or reads, and it ends when one begins. It measures in a folder that no repository can be called,
//! which is emptied when the server starts: a crash leaves nothing.
//!
//! `measure` does it, `net` without the disk, `rows` are what comes of it, `reports` keeps what was found.

mod measure;
mod net;
mod reports;
mod rows;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub(crate) use measure::measure;
pub(crate) use reports::Reports;
pub(crate) use rows::Watch;

const MIB: u64 = 1 << 20;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum LabTest {
    /// Requests of the disk: sequential and random, reads and writes, and an fsync.
    Disk,
    /// What the file system does with many small files.
    Files,
    /// What the system carries to itself, and what its links negotiated.
    Net,
}

impl fmt::Display for LabTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disk => "disk",
            Self::Files => "files",
            Self::Net => "net",
        })
    }
}

/// How much is written, and how long a row may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    /// Bytes of the disk's file.
    disk_bytes: u64,
    /// Small files.
    files: u64,
    row: Duration,
}

impl Extent {
    /// A short one takes some seconds, a long one one to three minutes.
    pub(crate) fn of(is_long: bool) -> Self {
        match is_long {
            false => Self { disk_bytes: 128 * MIB, files: 300, row: Duration::from_millis(250) },
            true => Self { disk_bytes: 512 * MIB, files: 1000, row: Duration::from_millis(1500) },
        }
    }
}
