//! The limit on sending that was set for a backup: no estimate is faster than it permits.

use holdall_meter::cost::CostModel;

use crate::speed_history::{Kind, Run, SpeedHistory, share_of_bytes};

/// A limit on what is sent, and how much of a source that is.
#[derive(Debug, Clone, Copy)]
pub struct OwnLimit {
    /// Bytes sent in a second.
    bytes_per_second: u64,
    /// What part of a source's bytes is sent; unknown before a backup told.
    share: Option<f64>,
}

impl OwnLimit {
    /// So many bytes a second, of what is sent to a repository; `history` says how much of a source that is.
    pub fn new(bytes_per_second: u64, history: &SpeedHistory, repository: &str) -> Self {
        // Runs that were held back on purpose compress as well as others.
        let is_there = |run: &&Run| run.kind == Kind::Backup && run.repository == repository;
        let runs: Vec<_> = history.runs().iter().filter(is_there).cloned().collect();
        let share = share_of_bytes(&runs, |run| run.sent_bytes);
        Self { bytes_per_second, share }
    }

    /// How many bytes of a source it permits in a second; as many as are sent, where it is not known how they
    /// compress.
    fn of_source(self) -> f64 {
        self.bytes_per_second as f64 / self.share.unwrap_or(1.0)
    }

    /// The model of what runs take that it holds back; and whether it does.
    pub fn hold(self, model: CostModel) -> (CostModel, bool) {
        let holds = model.bytes_per_second() > self.of_source();
        (if holds { model.at_byte_rate(self.of_source()) } else { model }, holds)
    }

    /// What is taken for granted of an estimate that it decides, to be said behind it.
    pub fn condition(self) -> &'static str {
        if self.share.is_none() { ", if it does not compress" } else { "" }
    }

    /// Bytes sent in a second.
    pub fn bytes_per_second(self) -> u64 {
        self.bytes_per_second
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use holdall_meter::cost::Work;

    /// A limit of so many bytes a second, of a source of which such a part is sent.
    pub(crate) fn own_limit(bytes_per_second: u64, share: Option<f64>) -> OwnLimit {
        OwnLimit { bytes_per_second, share }
    }

    #[test]
    fn no_estimate_is_faster_than_the_limit_permits_and_none_slower_for_a_limit_above_it() {
        let typical = CostModel::fit(&[], &[]);
        let work = Work { bytes: 1_000_000_000, ..Work::default() };
        let (held, holds) = own_limit(2_000_000, None).hold(typical);
        assert!(holds && held.estimate(&work).seconds >= 500.0);
        // Half of it is sent.
        let (held, holds) = own_limit(2_000_000, Some(0.5)).hold(typical);
        assert!(holds && (250.0..260.0).contains(&held.estimate(&work).seconds));
        assert_eq!(own_limit(500_000_000, None).hold(typical), (typical, false));
    }
}
