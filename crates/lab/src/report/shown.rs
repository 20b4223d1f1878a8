//! Figures as people read them.

use holdall_meter::Unit;
use holdall_meter::grouped;

use crate::Measurement;
use crate::cache::Cache;

/// `4K`, `128K`, `1M`: the sizes of requests, in powers of 1024; what does not come out even in bytes.
pub(super) fn block(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        bytes if bytes.is_multiple_of(1 << 20) => format!("{}M", bytes >> 20),
        bytes if bytes.is_multiple_of(1 << 10) => format!("{}K", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}

/// `512 MiB`, `200 MB`: the sizes of files, in powers of 1024 where they come out even in these, and else
/// in powers of 1000.
pub(super) fn file(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let fitting = units.into_iter().find(|(power, _)| bytes >= 1 << power);
    if let Some((power, unit)) = fitting.filter(|(power, _)| bytes.is_multiple_of(1 << power)) {
        return format!("{} {unit}", bytes >> power);
    }
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

/// `250 MB/s`: a round rate, at a scale.
pub(super) fn rate_mark(bytes_per_second: f64) -> String {
    match bytes_per_second {
        1e9.. => format!("{} GB/s", Short(bytes_per_second / 1e9)),
        1e6.. => format!("{} MB/s", Short(bytes_per_second / 1e6)),
        _ => format!("{} kB/s", Short(bytes_per_second / 1e3)),
    }
}

/// `1,234/s`.
pub(super) fn frequency(per_second: f64) -> String {
    match Unit::ItemsPerSecond.show(per_second).strip_suffix(" items/s") {
        Some(digits) => format!("{digits}/s"),
        None => format!("{per_second:.0}/s"),
    }
}

/// `1,234`.
pub(super) fn count(number: u64) -> String {
    grouped(number as f64)
}

/// `240 ms`, `81 µs`.
pub(super) fn time(nanoseconds: u64) -> String {
    let nanos = nanoseconds as f64;
    match nanos {
        1e9.. => format!("{} s", Short(nanos / 1e9)),
        1e6.. => format!("{} ms", Short(nanos / 1e6)),
        1e3.. => format!("{} µs", Short(nanos / 1e3)),
        _ => format!("{nanos} ns"),
    }
}

/// `1.50`: how much of one for each of the other.
pub(super) fn ratio(value: f64) -> String {
    format!("{value:.2}")
}

/// What a row is about, without its figures: `random read 4K QD32 x4 direct`.
pub(super) fn row(row: &Measurement) -> String {
    let mut words = row.operation.clone();
    if let Some(bytes) = row.block_bytes {
        words += &format!(" {}", block(bytes));
    }
    if let Some(bytes) = row.file_bytes.filter(|_| row.block_bytes.is_none()) {
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
    if row.end_fsync == Some(true) && !["fsync", "durable"].iter().any(|word| words.contains(word))
    {
        words += " + fsync";
    }
    if let Some(bytes) = row.file_bytes.filter(|_| row.block_bytes.is_some()) {
        words += &format!(", in a file of {}", file(bytes));
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
        assert_eq!([4096, 1 << 20, 128 << 10, 1000].map(block), ["4K", "1M", "128K", "1000 B"]);
        assert_eq!([2_000, 200_000_000, 1_500, 7].map(file), ["2 kB", "200 MB", "1.5 kB", "7 B"]);
        assert_eq!([4096, 512 << 20, 3 << 30].map(file), ["4 KiB", "512 MiB", "3 GiB"]);
        assert_eq!([10_000_000_000, 1536 << 10].map(file), ["10 GB", "1.6 MB"]);
        assert_eq!([240_000_000, 81_300, 5].map(time), ["240 ms", "81.3 µs", "5 ns"]);
        assert_eq!((frequency(1234.4), count(1234)), ("1,234/s".into(), "1,234".into()));
        let mut one = super::super::fixture::row("random read", 4096, 1e6);
        assert_eq!(row(&one), "random read 4K direct");
        (one.queue_depth, one.jobs, one.end_fsync) = (Some(32), Some(4), Some(true));
        assert_eq!(row(&one), "random read 4K QD32 x4 direct + fsync");
        one.file_bytes = Some(512 << 20);
        assert_eq!(row(&one), "random read 4K QD32 x4 direct + fsync, in a file of 512 MiB");
        let whole = Measurement {
            file_bytes: Some(2_000),
            end_fsync: Some(true),
            ..Measurement::new("write with fsync", 1.0)
        };
        assert_eq!(row(&whole), "write with fsync files of 2 kB");
        assert_eq!([0.25e9, 2.5e9, 5e3].map(rate_mark), ["250 MB/s", "2.5 GB/s", "5 kB/s"]);
    }
}
