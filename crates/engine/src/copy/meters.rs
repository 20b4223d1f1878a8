//! The meters of a copy's stages, in the order of the pipeline.

use std::sync::Arc;

use holdall_lab::{Layer, StageCounters, StageMeter};

use crate::restore::{ChunkSource, FETCHERS};
use crate::storing::StoringMeters;

/// One meter for each stage, or for each layer that a stage leans on.
pub(super) struct Meters {
    pub(super) plan: StageMeter,
    fetch: Arc<StageMeter>,
    open: Arc<StageMeter>,
    pub(super) hash: StageMeter,
    pub(super) rebuild: StageMeter,
    pub(super) storing: StoringMeters,
}

impl Meters {
    pub(super) fn new(source: &ChunkSource, sealers: usize, streams: usize) -> Self {
        Self {
            plan: StageMeter::new("plan", Layer::ClientCpu, 1),
            fetch: Arc::clone(&source.fetch_meter),
            open: Arc::clone(&source.open_meter),
            hash: StageMeter::new("hash", Layer::ClientCpu, FETCHERS),
            rebuild: StageMeter::new("rebuild", Layer::ClientCpu, 1),
            storing: StoringMeters::new(sealers, streams),
        }
    }

    pub(super) fn snapshot(&self) -> Vec<StageCounters> {
        let before = [&self.plan, &*self.fetch, &*self.open, &self.hash, &self.rebuild];
        let mut stages = before.map(StageMeter::snapshot).to_vec();
        stages.extend(self.storing.snapshot());
        stages
    }
}
