//! Rows that grow until one is as large as there is time for.
//!
//! Neither a write that a disk has taken nor an fsync can be called back, and 50 MB hold a stick of 5
//! MB/s for 10 seconds. So each row grows: first 64 KiB, or one request; then the largest that will
//! take no more than half of what is left of the time, at the rate of the one before; until it is all
//! that was asked for, in one write or at once, or nothing larger is done in time. The last is told. It
//! is half, and at most 16 times as much, so that a disk whose own cache fills up on the way, and that
//! is four times slower then, takes no more than twice the time. All writes are direct: through the
//! system's cache the write would measure memory, and leave the waiting to the fsync.

use std::iter::successors;
use std::time::Duration;

use super::row::{Access, Row, Until};

/// What the large write grows from, and by.
const LARGE_UNIT_BYTES: u64 = 64 << 10;
/// 50 MB: 48 MiB.
const LARGE_UNITS: u32 = 768;
/// 500 requests at once.
const SMALL_BLOCK_BYTES: u64 = 4096;
const SMALL_REQUESTS: u32 = 500;
/// How many times as large as the one before a row is at most: what is small tells little of what is
/// large.
const MOST_GROWTH: f64 = 16.0;
/// How long each of the disk's two may take, with the smaller ones before it.
pub const QUICK_LIMIT: Duration = Duration::from_millis(1600);

/// Of one write, the rows from the smallest to that of 50 MB.
pub fn growing_write() -> Vec<Row> {
    growing(LARGE_UNITS, large)
}

/// Of small writes at once, the rows from a single one to 500 of them.
pub fn growing_at_once() -> Vec<Row> {
    growing(SMALL_REQUESTS, small)
}

/// Of 1, 2, 4 and so on, and of `most` at the end.
fn growing(most: u32, row: impl Fn(u32) -> Row) -> Vec<Row> {
    let next = |&last: &u32| (last < most).then(|| most.min(last * 2));
    successors(Some(1), next).map(row).collect()
}

/// So many units in one write.
fn large(units: u32) -> Row {
    let bytes = LARGE_UNIT_BYTES * u64::from(units);
    Row {
        access: Access::Write,
        block_bytes: bytes,
        queue_depth: 1,
        jobs: 1,
        file_bytes: bytes,
        until: Until::Once,
        direct: true,
        end_fsync: true,
    }
}

/// So many small writes at once.
fn small(requests: u32) -> Row {
    Row {
        access: Access::RandomWrite,
        block_bytes: SMALL_BLOCK_BYTES,
        queue_depth: requests,
        file_bytes: SMALL_BLOCK_BYTES * u64::from(requests),
        ..large(1)
    }
}

/// Which of the rows behind the one at `at`, which took `took`, is to be measured next where so much
/// time is left; `None` if none is done in time.
pub fn larger_in_time(rows: &[Row], at: usize, took: Duration, left: Duration) -> Option<usize> {
    let is_in_time = |row: &Row| {
        let growth = row.file_bytes as f64 / rows[at].file_bytes as f64;
        growth <= MOST_GROWTH && took.mul_f64(growth) <= left / 2
    };
    (at + 1..rows.len()).rev().find(|&larger| is_in_time(&rows[larger]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: f64 = 1e6;

    /// The bytes of the row that is told of a disk on which a row takes `took`, and what all took.
    fn told(rows: &[Row], took: impl Fn(&Row) -> Duration) -> (u64, Duration) {
        let (mut at, mut all) = (0, Duration::ZERO);
        loop {
            let this = took(&rows[at]);
            all += this;
            match larger_in_time(rows, at, this, QUICK_LIMIT.saturating_sub(all)) {
                Some(larger) => at = larger,
                None => return (rows[at].file_bytes, all),
            }
        }
    }

    /// A write at so many bytes a second, after a while that each row takes.
    fn steady(rate: f64) -> impl Fn(&Row) -> Duration {
        move |row| Duration::from_secs_f64(0.04 + row.file_bytes as f64 / rate)
    }

    fn all_large() -> Vec<Row> {
        growing(LARGE_UNITS, large)
    }

    #[test]
    fn rows_grow_to_one_write_of_50_mb_and_500_writes_at_once() {
        let rows = all_large();
        rows.iter().for_each(|row| row.check().unwrap());
        let all = 48_u64 << 20;
        assert!(rows.last().is_some_and(|row| (row.block_bytes, row.file_bytes) == (all, all)));
        let most = growing(SMALL_REQUESTS, small).pop().unwrap();
        most.check().unwrap();
        assert_eq!((most.queue_depth, most.file_bytes), (500, 500 * 4096));
        let depths: Vec<_> = growing(5, small).iter().map(|row| row.queue_depth).collect();
        assert_eq!(depths, [1, 2, 4, 5]);
    }

    #[test]
    fn a_usual_disk_has_50_mb_in_one_write_and_a_slow_one_less_in_time() {
        let rows = all_large();
        for (rate, most_units) in [(3000.0, 768_u64), (150.0, 768), (5.0, 64), (0.2, 1)] {
            let (bytes, took) = told(&rows, steady(rate * MB));
            let units = bytes / LARGE_UNIT_BYTES;
            let is_expected = (most_units / 4..=most_units).contains(&units);
            let is_all = units == 768 || rate < 100.0;
            assert!(
                is_expected && is_all && took <= QUICK_LIMIT,
                "{rate} MB/s: {bytes} in {took:?}"
            );
        }
        // Each of the small ones takes 25 ms, as on a stick: all of them would take 12 s.
        let rows = growing(SMALL_REQUESTS, small);
        let (bytes, took) = told(&rows, steady(4096.0 / 0.025));
        assert!(
            (8 * 4096..64 * 4096).contains(&bytes) && took <= QUICK_LIMIT,
            "{bytes} in {took:?}"
        );
        assert_eq!(told(&rows, steady(100.0 * MB)).0, 500 * 4096);
    }

    #[test]
    fn a_disk_whose_cache_fills_up_takes_no_more_than_twice_the_time() {
        for cache_mebibytes in 0..48_u32 {
            let cache_bytes = f64::from(cache_mebibytes << 20);
            let took = |row: &Row| {
                let (bytes, rate) = (row.file_bytes as f64, 100.0 * MB);
                let slow = (bytes - cache_bytes).max(0.0) / (rate / 4.0);
                Duration::from_secs_f64(bytes.min(cache_bytes) / rate + slow)
            };
            let (bytes, took) = told(&all_large(), took);
            assert!(
                took <= QUICK_LIMIT * 2,
                "{bytes} in {took:?} with {cache_mebibytes} MiB of cache"
            );
        }
    }
}
