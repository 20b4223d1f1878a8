//! Figures as people read them.

use crate::disk::Cache;
use crate::{Measurement, Unit};

/// `4K`, `128K`, `1M`: the sizes of requests, in powers of 1024; what is none of them in bytes.
pub(super) fn block(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        bytes if bytes.is_multiple_of(1 << 20) => format!("{}M", bytes >> 20),
        bytes if bytes.is_multiple_of(1 << 10) => format!("{}K", bytes >> 10),
        bytes => file(bytes),
    }
}

/// `200 MB`, `2 kB`: the sizes of files, in powers of 1000.
pub(super) fn file(bytes: u64) -> String {
    let bytes = bytes as f64;
    match bytes {
        1e9.. => format!("{} GB", Short(bytes / 1e9)),
        1e6.. => format!("{} MB", Short(bytes / 1e6)),
        1e3.. => format!("{} kB", Short(bytes / 1e3)),
        _ => format!("{bytes} B"),
    }
}

/// A number with one digit behind the point, or none where that is 0.
struct Short(f64);

impl std::fmt::Display for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rounded = (self.0 * 10.0).round() / 10.0;
        write!(f, "{rounded}")
    }
}

/// `38.2 MB/s`.
pub(super) fn rate(bytes_per_second: f64) -> String {
    Unit::BytesPerSecond.show(bytes_per_second)
}

/// `1,234/s`.
pub(super) fn frequency(per_second: f64) -> String {
    match Unit::ItemsPerSecond.show(per_second).strip_suffix(" items/s") {
        Some(digits) => format!("{digits}/s"),
        None => format!("{per_second:.0}/s"),
    }
}

/// `240 ms`, `81 us`.
pub(super) fn time(nanoseconds: u64) -> String {
    let nanos = nanoseconds as f64;
    match nanos {
        1e9.. => format!("{} s", Short(nanos / 1e9)),
        1e6.. => format!("{} ms", Short(nanos / 1e6)),
        1e3.. => format!("{} us", Short(nanos / 1e3)),
        _ => format!("{nanos} ns"),
    }
}

/// What a row is about, without its figures: `random read 4K QD32 x4 direct`.
pub(super) fn row(row: &Measurement) -> String {
    let mut words = row.operation.clone();
    if let Some(bytes) = row.block_bytes {
        words += &format!(" {}", block(bytes));
    }
    if let Some(bytes) = row.file_bytes {
        words += &format!(" files of {}", file(bytes));
    }
    if let Some(depth @ 2..) = row.queue_depth {
        words += &format!(" QD{depth}");
    }
    if let Some(jobs @ 2..) = row.jobs {
        words += &format!(" x{jobs}");
    }
    if row.direct == Some(true) {
        words += " direct";
    }
    if row.end_fsync == Some(true) {
        words += " + fsync";
    }
    if let Some(cache) = row.cache.filter(|cache| *cache != Cache::Direct) {
        words += &format!(", {}", cache.words());
    }
    if let Some(name) = &row.known_as {
        words += &format!(" ({name})");
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_like_a_person_would_write_them() {
        assert_eq!([4096, 1 << 20, 128 << 10, 1000].map(block), ["4K", "1M", "128K", "1 kB"]);
        assert_eq!([2_000, 200_000_000, 1_500, 7].map(file), ["2 kB", "200 MB", "1.5 kB", "7 B"]);
        assert_eq!([240_000_000, 81_300, 5].map(time), ["240 ms", "81.3 us", "5 ns"]);
        assert_eq!(frequency(1234.4), "1,234/s");
        let mut one = super::super::fixture::row("random read", 4096, 1e6);
        assert_eq!(row(&one), "random read 4K direct");
        (one.queue_depth, one.jobs, one.end_fsync) = (Some(32), Some(4), Some(true));
        assert_eq!(row(&one), "random read 4K QD32 x4 direct + fsync");
    }
}
