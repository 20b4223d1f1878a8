//! What disks were made to do: their counters before and after, against what was asked.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::StorageStack;

/// `/proc/diskstats` counts in these whatever the device has.
const SECTOR_BYTES: u64 = 512;
/// From this size on it hardly matters where on a disk a request goes.
const LARGE_BYTES: u64 = 128 << 10;

/// A disk's counters since it was found, or of several disks together. Everybody's work counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Reads that ended.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes that ended.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Requests that were joined to another before the device saw them.
    pub merged: u64,
    /// Flushes of the device's cache.
    pub flushes: u64,
}

impl DeviceCounters {
    /// The counters of all disks below `stack` now, by `/proc` below `root`; `None` if there are none.
    pub fn read(root: &Path, stack: &StorageStack) -> Option<Self> {
        let text = std::fs::read_to_string(root.join("proc/diskstats")).ok()?;
        let mut total = None;
        for line in text.lines() {
            let Some((name, counters)) = parse(line) else { continue };
            if stack.disks.iter().any(|disk| disk.name == name) {
                total = Some(total.unwrap_or_else(Self::default).plus(&counters));
            }
        }
        total
    }

    /// What was counted after `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(earlier.reads),
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            writes: self.writes.saturating_sub(earlier.writes),
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
            merged: self.merged.saturating_sub(earlier.merged),
            flushes: self.flushes.saturating_sub(earlier.flushes),
        }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: &Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            read_bytes: self.read_bytes + other.read_bytes,
            writes: self.writes + other.writes,
            written_bytes: self.written_bytes + other.written_bytes,
            merged: self.merged + other.merged,
            flushes: self.flushes + other.flushes,
        }
    }
}

/// A line: name and counters (Documentation/admin-guide/iostats.rst).
fn parse(line: &str) -> Option<(&str, DeviceCounters)> {
    let mut fields = line.split_whitespace().skip(2);
    let name = fields.next()?;
    let numbers: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
    let at = |place: usize| numbers.get(place).copied();
    let counters = DeviceCounters {
        reads: at(0)?,
        merged: at(1)? + at(5)?,
        read_bytes: at(2)?.saturating_mul(SECTOR_BYTES),
        writes: at(4)?,
        written_bytes: at(6)?.saturating_mul(SECTOR_BYTES),
        // Since Linux 5.5.
        flushes: at(15).unwrap_or_default(),
    };
    Some((name, counters))
}

/// How a disk had to go about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// One after the other, or in pieces so large that it hardly matters.
    Sequential,
    /// In small pieces here and there.
    Scattered,
}

impl Pattern {
    /// As a table calls it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Scattered => "scattered",
        }
    }
}

/// What disks did while something was asked of them. Other programs' work is in it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DeviceWork {
    /// Reads and writes that the devices did.
    pub operations: u64,
    /// Flushes of their caches.
    pub flushes: u64,
    /// Bytes read from them.
    pub bytes_read: u64,
    /// Bytes written to them.
    pub bytes_written: u64,
    /// Bytes that they moved for each byte that was asked for.
    pub bytes_for_each_asked: f64,
    /// Bytes of a request, on average; none if there was none.
    pub bytes_for_each_operation: Option<u64>,
    /// How they had to go about it; none if there was nothing.
    pub pattern: Option<Pattern>,
}

impl DeviceWork {
    /// From what was counted while `asked_bytes` were asked for in pieces of `block_bytes`, in an order
    /// that looks random or not.
    ///
    /// A device's counters do not say where a request went, only how large it was. Large ones are
    /// sequential whatever the order; small ones are if that was the order, and they are about as
    /// large as was asked: where a file lies in pieces, or a journal is written between, they are not.
    pub fn new(counted: &DeviceCounters, asked_bytes: u64, block_bytes: u64, random: bool) -> Self {
        let operations = counted.reads + counted.writes;
        let moved = counted.read_bytes + counted.written_bytes;
        let each = moved.checked_div(operations);
        let enough = if random { LARGE_BYTES } else { block_bytes.min(LARGE_BYTES) / 2 };
        let pattern = |each| if each >= enough { Pattern::Sequential } else { Pattern::Scattered };
        Self {
            operations,
            flushes: counted.flushes,
            bytes_read: counted.read_bytes,
            bytes_written: counted.written_bytes,
            bytes_for_each_asked: moved as f64 / asked_bytes.max(1) as f64,
            bytes_for_each_operation: each,
            pattern: each.map(pattern),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_with_flushes_and_without() {
        let line = " 259 0 nvme0n1 10 2 80 5 20 3 160 7 0 9 12 0 0 0 0 4 1";
        let (name, counters) = parse(line).unwrap();
        let expected = DeviceCounters {
            reads: 10,
            read_bytes: 80 * 512,
            writes: 20,
            written_bytes: 160 * 512,
            merged: 5,
            flushes: 4,
        };
        assert_eq!((name, counters), ("nvme0n1", expected));
        assert_eq!(parse("8 0 sda 10 2 80 5 20 3 160 7 0 9 12").unwrap().1.flushes, 0);
        assert_eq!(parse("8 0 sda 10"), None);
    }

    #[test]
    fn large_requests_are_sequential_and_small_ones_only_if_that_was_asked() {
        let counted = |operations, bytes| DeviceCounters {
            writes: operations,
            written_bytes: bytes,
            ..DeviceCounters::default()
        };
        let pattern = |counted: DeviceCounters, block, random| {
            DeviceWork::new(&counted, 1 << 20, block, random).pattern
        };
        assert_eq!(pattern(counted(8, 1 << 20), 4096, true), Some(Pattern::Sequential));
        assert_eq!(pattern(counted(256, 1 << 20), 4096, true), Some(Pattern::Scattered));
        assert_eq!(pattern(counted(256, 1 << 20), 4096, false), Some(Pattern::Sequential));
        assert_eq!(pattern(counted(256, 1 << 20), 1 << 20, false), Some(Pattern::Scattered));
        assert_eq!(pattern(counted(0, 0), 4096, false), None);
        let work = DeviceWork::new(&counted(10, 3 << 20), 1 << 20, 4096, false);
        assert_eq!((work.bytes_for_each_asked, work.operations), (3.0, 10));
    }
}
