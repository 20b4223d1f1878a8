//! The meters of a backup's stages, in the order of the pipeline.

use holdall_meter::{Layer, StageCounters, StageMeter};

use crate::storing::StoringMeters;

/// One meter for each stage, or for each layer that a stage leans on.
pub(crate) struct Meters {
    pub(crate) walk: StageMeter,
    pub(crate) plan: StageMeter,
    pub(crate) read: StageMeter,
    pub(crate) hash: StageMeter,
    pub(crate) storing: StoringMeters,
}

impl Meters {
    pub(crate) fn new(walkers: usize, readers: usize, sealers: usize, streams: usize) -> Self {
        let count = |threads: usize| u32::try_from(threads).unwrap_or(u32::MAX);
        Self {
            walk: StageMeter::new("walk", Layer::SourceMetadata, count(walkers)),
            plan: StageMeter::new("plan", Layer::ClientCpu, 1),
            read: StageMeter::new("read", Layer::SourceRead, count(readers)),
            hash: StageMeter::new("hash", Layer::ClientCpu, count(readers)),
            storing: StoringMeters::new(sealers, streams),
        }
    }

    pub(crate) fn snapshot(&self) -> Vec<StageCounters> {
        let mut stages =
            [&self.walk, &self.plan, &self.read, &self.hash].map(StageMeter::snapshot).to_vec();
        stages.extend(self.storing.snapshot());
        stages
    }
}
