//! How long requests took: counted as they come, in constant memory.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::Latency;

/// Three digits are kept of each time.
const DIGITS: u8 = 3;
/// A request that takes longer than this hour counts as an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Counts how long requests took.
#[derive(Debug, Clone)]
pub struct LatencyCount {
    /// `None` never happens: the bounds above are ones that a histogram can have.
    times: Option<Histogram<u64>>,
}

impl Default for LatencyCount {
    fn default() -> Self {
        Self { times: Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).ok() }
    }
}

impl LatencyCount {
    /// One more request took so long.
    pub fn add(&mut self, took: Duration) {
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(LONGEST_NS);
        if let Some(times) = &mut self.times {
            times.saturating_record(took_ns);
        }
    }

    /// Adds all that another counted.
    pub fn merge(&mut self, other: &Self) {
        if let Some((times, other)) = self.times.as_mut().zip(other.times.as_ref()) {
            // Both have the same bounds.
            let _ = times.add(other);
        }
    }

    /// How many requests were counted.
    pub fn count(&self) -> u64 {
        self.times.as_ref().map_or(0, Histogram::len)
    }

    /// The percentiles; `None` if nothing was counted.
    pub fn latency(&self) -> Option<Latency> {
        let times = self.times.as_ref().filter(|times| !times.is_empty())?;
        Some(Latency {
            p50: times.value_at_quantile(0.5),
            p90: times.value_at_quantile(0.9),
            p99: times.value_at_quantile(0.99),
            p99_9: times.value_at_quantile(0.999),
        })
    }
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
    }
}
