//! The meters of a stage whose threads make requests: whoever answers says where its time went.

use std::time::{Duration, Instant};

use holdall_lab::{Layer, StageCounters, StageMeter};
use holdall_protocol::{Fetched, RepositoryError, RequestTimes};

/// One meter for each layer that a request leans on.
pub(crate) struct RequestMeters {
    network: StageMeter,
    busy: StageMeter,
    cpu: StageMeter,
    disk: StageMeter,
}

impl RequestMeters {
    /// Meters at zero for a stage of so many threads.
    pub(crate) fn new(name: &'static str, threads: u32) -> Self {
        let of = |layer| StageMeter::new(name, layer, threads);
        Self {
            network: of(Layer::Network),
            busy: of(Layer::ServerBusy),
            cpu: of(Layer::ServerCpu),
            disk: of(Layer::ServerDisk),
        }
    }

    /// Counts the time that `wait` takes, which is for something to ask.
    pub(crate) fn waiting_in<R>(&self, wait: impl FnOnce() -> R) -> R {
        self.network.waiting_in(wait)
    }

    /// Counts the time that `wait` takes, which is for room behind this stage.
    pub(crate) fn waiting_out<R>(&self, wait: impl FnOnce() -> R) -> R {
        self.network.waiting_out(wait)
    }

    /// Makes a request that fetches, and counts it. One that fails was the network's.
    ///
    /// # Errors
    /// Those of `request`.
    pub(crate) fn fetching(
        &self,
        request: impl FnOnce() -> Result<Fetched, RepositoryError>,
    ) -> Result<Fetched, RepositoryError> {
        let begun = Instant::now();
        let fetched = request();
        let times = fetched.as_ref().map(|fetched| fetched.times).unwrap_or_default();
        self.count(begun.elapsed(), &times);
        fetched
    }

    /// Divides a request's time among the layers that it leaned on.
    pub(crate) fn count(&self, all: Duration, times: &RequestTimes) {
        let mut left = all;
        let parts = [
            (&self.busy, times.queue_seconds),
            (&self.cpu, times.cpu_seconds),
            (&self.disk, times.disk_seconds),
        ];
        for (meter, seconds) in parts {
            let part = Duration::try_from_secs_f64(seconds).unwrap_or_default().min(left);
            meter.add_working(part);
            left -= part;
        }
        self.network.add_working(left);
    }

    /// What was counted so far.
    pub(crate) fn snapshot(&self) -> [StageCounters; 4] {
        [&self.network, &self.busy, &self.cpu, &self.disk].map(StageMeter::snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_divided_by_what_its_answer_says_and_never_beyond_its_length() {
        let meters = RequestMeters::new("fetch", 2);
        let times = RequestTimes {
            receive_seconds: 0.5,
            queue_seconds: 1.0,
            cpu_seconds: 2.0,
            disk_seconds: 3.0,
        };
        meters.count(Duration::from_secs(10), &times);
        assert_eq!(meters.snapshot().map(|part| part.working_seconds), [4.0, 1.0, 2.0, 3.0]);
        // A server that lies can not make a request longer than it was seen to be.
        let absurd = RequestTimes { cpu_seconds: 1e9, disk_seconds: f64::NAN, ..times };
        meters.count(Duration::from_secs(2), &absurd);
        assert_eq!(meters.snapshot().map(|part| part.working_seconds), [4.0, 2.0, 3.0, 3.0]);
    }
}
