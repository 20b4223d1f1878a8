//! The meters of the stages from results to the repository, in their order.

use super::ask::ASKERS;
use holdall_lab::{Layer, StageCounters, StageMeter};

/// One meter for each stage, or for each layer that a stage leans on.
pub(crate) struct StoringMeters {
    pub(crate) assemble: StageMeter,
    pub(super) ask: StageMeter,
    pub(super) fill: StageMeter,
    pub(super) seal: StageMeter,
    pub(super) network: StageMeter,
    pub(super) server_busy: StageMeter,
    pub(super) server_cpu: StageMeter,
    pub(super) server_disk: StageMeter,
}

impl StoringMeters {
    pub(crate) fn new(sealers: usize, senders: usize) -> Self {
        let count = |threads: usize| u32::try_from(threads).unwrap_or(u32::MAX);
        let send = |layer| StageMeter::new("send", layer, count(senders));
        Self {
            assemble: StageMeter::new("assemble", Layer::ClientCpu, 1),
            ask: StageMeter::new("ask", Layer::Network, count(ASKERS)),
            fill: StageMeter::new("fill", Layer::ClientCpu, 1),
            seal: StageMeter::new("seal", Layer::ClientCpu, count(sealers)),
            network: send(Layer::Network),
            server_busy: send(Layer::ServerBusy),
            server_cpu: send(Layer::ServerCpu),
            server_disk: send(Layer::ServerDisk),
        }
    }

    pub(crate) fn snapshot(&self) -> Vec<StageCounters> {
        [
            &self.assemble,
            &self.ask,
            &self.fill,
            &self.seal,
            &self.network,
            &self.server_busy,
            &self.server_cpu,
            &self.server_disk,
        ]
        .map(StageMeter::snapshot)
        .to_vec()
    }
}
