//! One row of a disk's table: what is asked of it, and how.

use std::time::Duration;

use crate::LabError;

/// The most memory that the buffers of one row take together.
const MAX_BUFFER_BYTES: u64 = 1 << 30;
/// Requests that go around the page cache are made of such pieces.
const SECTOR_BYTES: u64 = 512;

/// In which order, and which way, a file's blocks are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read from the first to the last.
    Read,
    /// Written from the first to the last.
    Write,
    /// Read in an order that looks random, each once before any is read again.
    RandomRead,
    /// Written in such an order.
    RandomWrite,
}

impl Access {
    /// As a measurement calls it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Read => "sequential read",
            Self::Write => "sequential write",
            Self::RandomRead => "random read",
            Self::RandomWrite => "random write",
        }
    }

    /// Whether the file's content changes.
    pub fn writes(self) -> bool {
        matches!(self, Self::Write | Self::RandomWrite)
    }

    /// Whether the order looks random.
    pub fn is_random(self) -> bool {
        matches!(self, Self::RandomRead | Self::RandomWrite)
    }
}

/// When a row ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Each block was moved once.
    Once,
    /// Each block was moved once, or the time is over.
    OnceWithin(Duration),
    /// The time is over; blocks are moved again and again until then.
    Time(Duration),
}

impl Until {
    /// The longest that it may take.
    pub(super) fn limit(self) -> Option<Duration> {
        match self {
            Self::Once => None,
            Self::OnceWithin(limit) | Self::Time(limit) => Some(limit),
        }
    }

    /// Whether it begins again when each block was moved.
    pub(super) fn repeats(self) -> bool {
        matches!(self, Self::Time(_))
    }
}

/// What is asked of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Order and way.
    pub access: Access,
    /// Bytes of each request.
    pub block_bytes: u64,
    /// Requests under way at once, for each job.
    pub queue_depth: u32,
    /// Threads, each with a file of its own.
    pub jobs: u32,
    /// Bytes of each job's file; what is left behind its last whole block is not touched.
    pub file_bytes: u64,
    /// When it ends.
    pub until: Until,
    /// Whether to go around the page cache.
    pub direct: bool,
    /// Whether a write ends with an fsync, and the time includes it.
    pub end_fsync: bool,
}

impl Row {
    /// Whole blocks of each job's file.
    pub(super) fn blocks(&self) -> u64 {
        self.file_bytes / self.block_bytes
    }

    /// Whether it makes sense.
    ///
    /// # Errors
    /// [`LabError::Settings`].
    pub fn check(&self) -> Result<(), LabError> {
        let refuse = |what: &str| Err(LabError::Settings(what.to_owned()));
        if self.block_bytes == 0 || self.queue_depth == 0 || self.jobs == 0 {
            return refuse("a block, a queue and a number of jobs cannot be 0");
        }
        if self.file_bytes < self.block_bytes {
            return refuse("the file is smaller than a block");
        }
        if self.direct && !self.block_bytes.is_multiple_of(SECTOR_BYTES) {
            return refuse("a block that goes around the cache is a multiple of 512 bytes");
        }
        let buffers = u64::from(self.queue_depth) * u64::from(self.jobs);
        if self.block_bytes.saturating_mul(buffers) > MAX_BUFFER_BYTES {
            return refuse("blocks, queue and jobs together would take more than 1 GiB of memory");
        }
        if self.end_fsync && !self.access.writes() {
            return refuse("only a write can end with an fsync");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row {
            access: Access::Write,
            block_bytes: 4096,
            queue_depth: 1,
            jobs: 1,
            file_bytes: 10_000,
            until: Until::Once,
            direct: true,
            end_fsync: true,
        }
    }

    #[test]
    fn a_row_that_makes_no_sense_is_refused() {
        row().check().unwrap();
        assert_eq!(row().blocks(), 2);
        let wrong = [
            Row { block_bytes: 0, ..row() },
            Row { queue_depth: 0, ..row() },
            Row { jobs: 0, ..row() },
            Row { file_bytes: 4095, ..row() },
            Row { block_bytes: 1000, ..row() },
            Row { jobs: 1 << 20, ..row() },
            Row { access: Access::Read, ..row() },
        ];
        for row in wrong {
            assert!(matches!(row.check(), Err(LabError::Settings(_))), "{row:?}");
        }
    }
}
