//! The meters of a copy's stages, in the order of the pipeline.

use std::sync::Arc;

use holdall_meter::{Layer, StageCounters, StageMeter};

use crate::restore::{ChunkMeters, ChunkSource, FETCHERS};
use crate::storing::StoringMeters;

/// One meter for each stage, or for each layer that a stage leans on.
pub(super) struct Meters {
    pub(super) plan: StageMeter,
    chunks: Arc<ChunkMeters>,
    pub(super) hash: StageMeter,
    pub(super) rebuild: StageMeter,
    pub(super) storing: StoringMeters,
}

impl Meters {
    pub(super) fn new(source: &ChunkSource, storing: StoringMeters) -> Self {
        Self {
            plan: StageMeter::new("plan", Layer::ClientCpu, 1),
            chunks: Arc::clone(&source.meters),
            hash: StageMeter::new("hash", Layer::ClientCpu, FETCHERS as u32),
            rebuild: StageMeter::new("rebuild", Layer::ClientCpu, 1),
            storing,
        }
    }

    pub(super) fn snapshot(&self) -> Vec<StageCounters> {
        let mut stages = vec![self.plan.snapshot()];
        stages.extend(self.chunks.snapshot());
        stages.extend([self.hash.snapshot(), self.rebuild.snapshot()]);
        stages.extend(self.storing.snapshot());
        stages
    }
}
