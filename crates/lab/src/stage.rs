//! What a stage counted: plain data, in seconds summed over the stage's threads.

use serde::{Deserialize, Serialize};

use crate::Layer;

/// The counters of one stage, or of one layer's part in a stage.
///
/// Several entries with the same name are parts of one stage that leans on several layers: a sender
/// divides the time of its requests into network, server-cpu, server-disk and server-busy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageCounters {
    /// The stage's name: a verb such as `walk`, `read`, `seal`, `send`.
    pub name: String,
    /// What the working time leans on.
    pub layer: Layer,
    /// Seconds spent working, summed over threads.
    #[serde(rename = "working")]
    pub working_seconds: f64,
    /// Seconds spent waiting for input, summed over threads.
    #[serde(rename = "waiting_in")]
    pub waiting_in_seconds: f64,
    /// Seconds spent waiting for room in the next queue, summed over threads.
    #[serde(rename = "waiting_out")]
    pub waiting_out_seconds: f64,
    /// How many threads (or concurrent requests) the stage has, on average where their number follows
    /// the storage; parts of a stage have all of them. 0 for what is no stage but a time in which
    /// something was under way, however many times at once.
    pub threads: u32,
}

impl StageCounters {
    /// What was counted after `earlier`, an older snapshot of the same stage; never negative.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            name: self.name.clone(),
            layer: self.layer,
            working_seconds: (self.working_seconds - earlier.working_seconds).max(0.0),
            waiting_in_seconds: (self.waiting_in_seconds - earlier.waiting_in_seconds).max(0.0),
            waiting_out_seconds: (self.waiting_out_seconds - earlier.waiting_out_seconds).max(0.0),
            threads: self.threads,
        }
    }

    /// `seconds` as a share of what the stage's threads could have spent, in `[0, 1]`.
    pub(crate) fn share(&self, seconds: f64, wall_seconds: f64) -> f64 {
        let available = wall_seconds * f64::from(self.threads.max(1));
        if available > 0.0 { (seconds / available).clamp(0.0, 1.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_keeps_the_stage_and_subtracts_the_times() {
        let earlier = StageCounters {
            name: "seal".into(),
            layer: Layer::ClientCpu,
            working_seconds: 1.0,
            waiting_in_seconds: 2.0,
            waiting_out_seconds: 3.0,
            threads: 2,
        };
        let later = StageCounters { working_seconds: 4.0, ..earlier.clone() };
        let difference = later.since(&earlier);
        assert_eq!(difference.working_seconds, 3.0);
        assert_eq!(difference.waiting_in_seconds, 0.0);
        assert_eq!((difference.name.as_str(), difference.threads), ("seal", 2));
    }
}
