//! What a stage counted: plain data, in seconds summed over the stage's threads.

use serde::{Deserialize, Serialize};

use crate::{Latency, Layer};

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
    /// Seconds in which at least one of the threads worked, where that was counted.
    #[serde(default, rename = "busy", skip_serializing_if = "Option::is_none")]
    pub busy_seconds: Option<f64>,
    /// How many requests the stage made, where it is one that makes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// How long each of them was at `layer`: its part of the request, where a stage has parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<Latency>,
}

impl StageCounters {
    /// A stage that counted nothing yet.
    pub fn new(name: impl Into<String>, layer: Layer, threads: u32) -> Self {
        Self {
            name: name.into(),
            layer,
            working_seconds: 0.0,
            waiting_in_seconds: 0.0,
            waiting_out_seconds: 0.0,
            threads,
            busy_seconds: None,
            requests: None,
            latency_ns: None,
        }
    }

    /// What was counted after `earlier`, an older snapshot of the same stage; never negative. How long
    /// requests took cannot be told of a part of them.
    pub fn since(&self, earlier: &Self) -> Self {
        let requests = self.requests.zip(earlier.requests);
        let busy = self.busy_seconds.zip(earlier.busy_seconds);
        Self {
            working_seconds: (self.working_seconds - earlier.working_seconds).max(0.0),
            waiting_in_seconds: (self.waiting_in_seconds - earlier.waiting_in_seconds).max(0.0),
            waiting_out_seconds: (self.waiting_out_seconds - earlier.waiting_out_seconds).max(0.0),
            busy_seconds: busy.map(|(now, then)| (now - then).max(0.0)),
            requests: requests.map(|(now, then)| now.saturating_sub(then)),
            ..Self::new(self.name.as_str(), self.layer, self.threads)
        }
    }

    /// How long a request was at the stage's layer, in words; `None` where that was not counted.
    pub(crate) fn for_a_request(&self) -> Option<String> {
        let requests = self.requests.filter(|&requests| requests > 0)?;
        let mean_millis = 1e3 * self.working_seconds / requests as f64;
        let p99_millis = self.latency_ns?.p99 as f64 / 1e6;
        Some(format!("{mean_millis:.1} ms for a request on average, {p99_millis:.1} ms at p99"))
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
            working_seconds: 1.0,
            waiting_in_seconds: 2.0,
            waiting_out_seconds: 3.0,
            busy_seconds: Some(1.0),
            ..StageCounters::new("seal", Layer::ClientCpu, 2)
        };
        let later =
            StageCounters { working_seconds: 4.0, busy_seconds: Some(2.5), ..earlier.clone() };
        let difference = later.since(&earlier);
        assert_eq!(difference.busy_seconds, Some(1.5));
        assert_eq!(difference.working_seconds, 3.0);
        assert_eq!(difference.waiting_in_seconds, 0.0);
        assert_eq!((difference.name.as_str(), difference.threads), ("seal", 2));
        assert_eq!(difference.requests, None);
    }

    /// A stage with as many requests of 12 ms by the mean.
    fn with_requests(requests: u32) -> StageCounters {
        StageCounters {
            working_seconds: 0.012 * f64::from(requests),
            requests: Some(requests.into()),
            latency_ns: Some(Latency { p50: 9, p90: 9, p99: 240_000_000, p99_9: 300_000_000 }),
            ..StageCounters::new("send", Layer::ServerDisk, 4)
        }
    }

    #[test]
    fn of_requests_the_mean_and_the_p99_are_told_as_far_as_they_are_known() {
        let told = "12.0 ms for a request on average, 240.0 ms at p99";
        let stage = with_requests(500);
        assert_eq!(stage.for_a_request().as_deref(), Some(told));
        let part = stage.since(&with_requests(200));
        assert_eq!((part.requests, part.for_a_request()), (Some(300), None));
        assert_eq!(with_requests(0).for_a_request(), None);
    }

    #[test]
    fn a_stage_that_makes_no_requests_says_nothing_of_them_and_what_older_ones_wrote_is_read() {
        let plain = StageCounters::new("read", Layer::SourceRead, 4);
        let json = serde_json::to_value(&plain).unwrap();
        assert!(json.get("requests").is_none() && json.get("latency_ns").is_none(), "{json}");
        assert_eq!(serde_json::from_value::<StageCounters>(json).unwrap(), plain);
        let json = serde_json::to_value(with_requests(500)).unwrap();
        assert_eq!(json["requests"].as_u64(), Some(500));
        assert_eq!(json["latency_ns"]["p99"].as_u64(), Some(240_000_000));
    }
}
