//! How long requests took: counted as they come, in constant memory.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Each power of two is divided into so many ranges, as a number of bits: a time is kept to a thousandth.
const RANGE_BITS: u32 = 10;
/// A request that takes longer than this hour counts as an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// How long requests took, in nanoseconds: each figure is met by that share of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Half of them.
    pub p50: u64,
    /// 90 of 100.
    pub p90: u64,
    /// 99 of 100.
    pub p99: u64,
    /// 999 of 1,000.
    #[serde(rename = "p99.9")]
    pub p99_9: u64,
}

/// Counts how long requests took.
#[derive(Debug, Clone, Default)]
pub struct LatencyCount {
    /// How many requests were in each range of times, up to the longest that was seen: at most 34,000 ranges.
    counts: Vec<u64>,
    count: u64,
}

impl LatencyCount {
    /// One more request took so long.
    pub fn add(&mut self, took: Duration) {
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(LONGEST_NS);
        self.add_many(range_of(took_ns.min(LONGEST_NS)), 1);
    }

    /// Adds all that another counted.
    pub fn merge(&mut self, other: &Self) {
        other.counts.iter().enumerate().for_each(|(range, count)| self.add_many(range, *count));
    }

    fn add_many(&mut self, range: usize, more: u64) {
        if range >= self.counts.len() {
            self.counts.resize(range + 1, 0);
        }
        self.counts[range] += more;
        self.count += more;
    }

    /// How many requests were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The percentiles; `None` if nothing was counted.
    pub fn latency(&self) -> Option<Latency> {
        let percentile = |share| self.reached_by(share);
        Some(Latency {
            p50: percentile(0.5)?,
            p90: percentile(0.9)?,
            p99: percentile(0.99)?,
            p99_9: percentile(0.999)?,
        })
    }

    /// The longest time in the range with which this share of the requests is reached.
    fn reached_by(&self, share: f64) -> Option<u64> {
        let wanted = (share * self.count as f64).ceil() as u64;
        let mut reached = 0;
        let range = self.counts.iter().position(|count| {
            reached += count;
            *count > 0 && reached >= wanted
        });
        range.map(longest_of)
    }
}

/// The range of a time: below 2^11 ns one for each nanosecond, then 2^10 for each power of two.
fn range_of(took_ns: u64) -> usize {
    let power = took_ns.checked_ilog2().unwrap_or(0).saturating_sub(RANGE_BITS);
    ((u64::from(power) << RANGE_BITS) + (took_ns >> power)) as usize
}

/// The longest time of a range, in nanoseconds.
fn longest_of(range: usize) -> u64 {
    let power = (range >> RANGE_BITS).saturating_sub(1);
    let first = range - (power << RANGE_BITS);
    ((first as u64 + 1) << power) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_percentile_is_met_by_its_share() {
        let (mut one, mut other) = (LatencyCount::default(), LatencyCount::default());
        assert_eq!((one.count(), one.latency()), (0, None));
        for micros in 1..=1000 {
            let count = if micros % 2 == 0 { &mut one } else { &mut other };
            count.add(Duration::from_micros(micros));
        }
        one.merge(&other);
        assert_eq!(one.count(), 1000);
        let found = one.latency().unwrap();
        let near = |found: u64, micros: u64| found.abs_diff(micros * 1000) <= micros * 2;
        assert!(near(found.p50, 500) && near(found.p90, 900), "{found:?}");
        assert!(near(found.p99, 990) && near(found.p99_9, 999), "{found:?}");
        one.add(Duration::from_secs(1 << 40));
        assert_eq!(range_of(LONGEST_NS), range_of(one.reached_by(1.0).unwrap()));
    }

    #[test]
    fn ranges_follow_each_other_and_none_is_longer_than_a_thousandth_of_its_times() {
        let mut shortest = 0;
        for range in 0..=range_of(LONGEST_NS) {
            let longest = longest_of(range);
            assert_eq!((range_of(shortest), range_of(longest)), (range, range));
            assert!(longest - shortest <= shortest >> RANGE_BITS, "{shortest} to {longest}");
            shortest = longest + 1;
        }
        assert!(shortest > LONGEST_NS);
    }
}
