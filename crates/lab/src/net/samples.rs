//! How long single requests took, gathered and put in order.

use std::time::Duration;

use holdall_meter::Latency;

/// So many are kept; those of a longer run are not, which takes more than a minute of waiting for
/// a disk.
const MOST: usize = 1 << 20;

/// How long each request took.
#[derive(Debug, Clone, Default)]
pub(super) struct Samples(Vec<u64>);

impl Samples {
    /// One more took so long.
    pub(super) fn add(&mut self, took: Duration) {
        if self.0.len() < MOST {
            self.0.push(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        }
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// What shares of them took at most so long; `None` without any.
    pub(super) fn latency(mut self) -> Option<Latency> {
        self.0.sort_unstable();
        // The smallest value that at least this share of all do not exceed.
        let at = |per_mille: usize| {
            let rank = (self.0.len() * per_mille).div_ceil(1000).max(1);
            self.0.get(rank - 1).copied()
        };
        Some(Latency { p50: at(500)?, p90: at(900)?, p99: at(990)?, p99_9: at(999)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_share_is_met_by_that_many() {
        let mut samples = Samples::default();
        assert_eq!(samples.clone().latency(), None);
        (1..=1000).rev().for_each(|nanos| samples.add(Duration::from_nanos(nanos)));
        let latency = samples.latency().unwrap();
        assert_eq!(latency, Latency { p50: 500, p90: 900, p99: 990, p99_9: 999 });
        let mut one = Samples::default();
        one.add(Duration::from_nanos(7));
        assert_eq!(one.latency(), Some(Latency { p50: 7, p90: 7, p99: 7, p99_9: 7 }));
    }
}
