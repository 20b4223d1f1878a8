//! The meters of the stages from results to the repository, in their order.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use holdall_meter::{Layer, StageCounters, StageMeter};
use holdall_protocol::Repository;

use super::threads::{ASKERS, senders};
use crate::pipeline::request_meters::RequestMeters;

/// One meter for each stage, or for each layer that a stage leans on.
pub(crate) struct StoringMeters {
    pub(crate) assemble: StageMeter,
    pub(super) ask: StageMeter,
    pub(super) fill: StageMeter,
    pub(super) seal: StageMeter,
    pub(super) send: RequestMeters,
    /// When requests were under way.
    pub(crate) talk: Talk,
}

/// The time in which at least one request was under way. A run whose requests wait for each other,
/// far away from its server, keeps no stage busy: each waits for a round trip, one after another.
#[derive(Default)]
pub(crate) struct Talk {
    state: Mutex<Talking>,
}

#[derive(Default)]
struct Talking {
    requests: usize,
    since: Option<Instant>,
    seconds: f64,
}

impl Talk {
    /// Makes a request.
    pub(crate) fn during<R>(&self, request: impl FnOnce() -> R) -> R {
        /// Counts the request out also when it panics.
        struct UnderWay<'a>(&'a Talk);
        impl Drop for UnderWay<'_> {
            fn drop(&mut self) {
                let mut state = self.0.lock();
                state.requests = state.requests.saturating_sub(1);
                if state.requests == 0
                    && let Some(since) = state.since.take()
                {
                    state.seconds += since.elapsed().as_secs_f64();
                }
            }
        }
        {
            let mut state = self.lock();
            state.requests += 1;
            state.since.get_or_insert_with(Instant::now);
        }
        let _under_way = UnderWay(self);
        request()
    }

    /// Adds a request that was made before.
    pub(crate) fn add(&self, took: Duration) {
        self.lock().seconds += took.as_secs_f64();
    }

    fn seconds(&self) -> f64 {
        let state = self.lock();
        state.seconds + state.since.map_or(0.0, |since| since.elapsed().as_secs_f64())
    }

    fn lock(&self) -> MutexGuard<'_, Talking> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn asking(layer: Layer) -> StageMeter {
    StageMeter::new("ask", layer, u32::try_from(ASKERS).unwrap_or(u32::MAX))
}

impl StoringMeters {
    pub(crate) fn new(sealers: usize, streams: usize) -> Self {
        let count = |threads: usize| u32::try_from(threads).unwrap_or(u32::MAX);
        Self {
            assemble: StageMeter::new("assemble", Layer::ClientCpu, 1),
            ask: asking(Layer::Network),
            fill: StageMeter::new("fill", Layer::ClientCpu, 1),
            seal: StageMeter::new("seal", Layer::ClientCpu, count(sealers)),
            send: RequestMeters::new("send", count(senders(streams))),
            talk: Talk::default(),
        }
    }

    /// The same for `repository`, where what is missing is looked up on its disk and not asked for over a network.
    pub(crate) fn of(repository: &dyn Repository, sealers: usize, streams: usize) -> Self {
        let layer = if repository.is_here() { Layer::ServerDisk } else { Layer::Network };
        Self { ask: asking(layer), ..Self::new(sealers, streams) }
    }

    pub(crate) fn snapshot(&self) -> Vec<StageCounters> {
        let mut stages = self.workers();
        stages.push(self.talking(&stages));
        stages
    }

    /// The time in which requests were under way, as far as it was not the server that had them.
    fn talking(&self, stages: &[StageCounters]) -> StageCounters {
        let of = |layers: &[Layer]| {
            let of_requests = stages.iter().filter(|stage| matches!(&*stage.name, "ask" | "send"));
            let of_layers = of_requests.filter(|stage| layers.contains(&stage.layer));
            of_layers.map(|stage| stage.working_seconds).sum::<f64>()
        };
        let server = of(&[Layer::ServerBusy, Layer::ServerCpu, Layer::ServerDisk]);
        let network = of(&[Layer::Network]);
        let all = network + server;
        let share = if all > 0.0 { network / all } else { 1.0 };
        StageCounters {
            working_seconds: self.talk.seconds() * share,
            ..StageCounters::new("talk", Layer::Network, 0)
        }
    }

    fn workers(&self) -> Vec<StageCounters> {
        let mut stages =
            [&self.assemble, &self.ask, &self.fill, &self.seal].map(StageMeter::snapshot).to_vec();
        stages.extend(self.send.snapshot());
        stages
    }
}
