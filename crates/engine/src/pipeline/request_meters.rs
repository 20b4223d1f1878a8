//! The meters of a stage whose threads make requests: whoever answers says where its time went.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use holdall_meter::{LatencyCount, Layer, StageCounters, StageMeter};
use holdall_protocol::{Fetched, RepositoryError, RequestTimes};

use crate::run::lock;

/// One meter for each layer that a request leans on.
pub(crate) struct RequestMeters {
    network: StageMeter,
    busy: StageMeter,
    cpu: StageMeter,
    disk: StageMeter,
    /// How long each request was at each layer, in the order of the meters. Locked once for a request,
    /// which carries megabytes.
    latencies: Mutex<[LatencyCount; 4]>,
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
            latencies: Mutex::default(),
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

    /// Counts the time that `wait` takes, which is for the network to be done with requests before.
    pub(crate) fn waiting_for_the_line<R>(&self, wait: impl FnOnce() -> R) -> R {
        let begun = Instant::now();
        let waited = wait();
        self.network.add_working(begun.elapsed());
        waited
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
        let part_of = |seconds| {
            let part = Duration::try_from_secs_f64(seconds).unwrap_or_default().min(left);
            left -= part;
            part
        };
        let [busy, cpu, disk] =
            [times.queue_seconds, times.cpu_seconds, times.disk_seconds].map(part_of);
        let mut latencies = lock(&self.latencies);
        let counters = self.meters().into_iter().zip(latencies.iter_mut());
        for ((meter, latency), part) in counters.zip([left, busy, cpu, disk]) {
            meter.add_working(part);
            latency.add(part);
        }
    }

    /// What was counted so far.
    pub(crate) fn snapshot(&self) -> [StageCounters; 4] {
        let latencies = lock(&self.latencies);
        let mut counted = latencies.iter();
        self.meters().map(|meter| {
            let latency = counted.next();
            StageCounters {
                requests: latency.map(LatencyCount::count),
                latency_ns: latency.and_then(LatencyCount::latency),
                ..meter.snapshot()
            }
        })
    }

    fn meters(&self) -> [&StageMeter; 4] {
        [&self.network, &self.busy, &self.cpu, &self.disk]
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
        // A server that lies cannot make a request longer than it was seen to be.
        let absurd = RequestTimes { cpu_seconds: 1e9, disk_seconds: f64::NAN, ..times };
        meters.count(Duration::from_secs(2), &absurd);
        assert_eq!(meters.snapshot().map(|part| part.working_seconds), [4.0, 2.0, 3.0, 3.0]);
    }

    #[test]
    fn how_long_each_request_was_at_each_layer_is_counted() {
        let meters = RequestMeters::new("send", 4);
        let none = |part: &StageCounters| part.requests == Some(0) && part.latency_ns.is_none();
        assert!(meters.snapshot().iter().all(none));
        for request in 0..100 {
            let disk_seconds = if request < 98 { 0.012 } else { 0.24 };
            let times = RequestTimes { disk_seconds, ..RequestTimes::default() };
            meters.count(Duration::from_millis(250), &times);
        }
        let parts = meters.snapshot();
        assert!(parts.iter().all(|part| part.requests == Some(100)));
        let millis = parts.map(|part| {
            let latency = part.latency_ns.unwrap();
            [latency.p50, latency.p99].map(|nanos| nanos / 1_000_000)
        });
        assert_eq!(millis, [[238, 238], [0, 0], [0, 0], [12, 240]]);
    }
}
