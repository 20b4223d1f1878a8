//! Storing: fills blocks with the objects that are missing.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender};
use holdall_crypto::{PlainObject, worth_compressing};
use holdall_format::limits::{
    BLOCK_MAX_OBJECTS, BLOCK_MAX_PLAIN_BYTES, BLOCK_TARGET_PLAIN_BYTES, TABLE_TARGET_BYTES,
};
use holdall_format::{BlockKind, ObjectId};
use holdall_tree::NodeKind;

use super::ask::{Asked, Wanted, Wish};
use super::meters::StoringMeters;
use super::piece::NewChunk;
use super::shared::Shared;
use crate::EngineError;
use crate::cache::recent::Recent;
use crate::run::Amount;

/// Ids of objects on their way that are remembered, so that a second copy is not sent behind them.
pub(super) const RECENT_IDS: usize = 64 << 10;

/// Plain objects that will be sealed together.
pub(super) struct PlainBlock {
    pub(super) kind: BlockKind,
    pub(super) objects: Vec<PlainObject>,
    pub(super) plain: Vec<u8>,
    /// What counts as done when it is durable.
    pub(super) stands_for: Amount,
}

/// The storing thread.
pub(super) struct Store<'a> {
    pub(super) shared: &'a Shared<'a>,
    pub(super) meters: &'a StoringMeters,
    pub(super) to_sealers: Sender<PlainBlock>,
    /// What is on its way.
    pub(super) recent: Recent<()>,
    pub(super) open: OpenBlocks,
    /// Plain bytes of what the repository did not have.
    pub(super) added_bytes: &'a AtomicU64,
}

impl Store<'_> {
    /// Stores what is missing until nothing more comes: the body of the storing thread.
    ///
    /// # Errors
    /// [`EngineError::Interrupted`] if another stage failed.
    pub(super) fn run(&mut self, asked: &Receiver<Asked>) -> Result<(), EngineError> {
        while let Ok(next) = self.meters.fill.waiting_in(|| asked.recv()) {
            match next {
                Asked::Objects(answered) => {
                    // Whoever asks is gone without an answer only when the run has failed.
                    let answer = self.meters.fill.waiting_in(|| answered.recv());
                    let (wishes, missing) = answer.map_err(|_| EngineError::Interrupted)?;
                    for (wanted, missing) in wishes.into_iter().zip(missing) {
                        if missing && self.recent.insert(wanted.wish.id(), ()) {
                            self.add(wanted)?;
                        } else {
                            self.shared.run.done(wanted.stands_for);
                        }
                    }
                }
                Asked::Flush => {
                    let mut rest = std::mem::take(&mut self.open).into_blocks();
                    rest.try_for_each(|block| self.hand_on(block))?;
                    self.shared.flushed();
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, Wanted { wish, stands_for }: Wanted) -> Result<(), EngineError> {
        self.added_bytes.fetch_add(wish.len_bytes() as u64, Ordering::Relaxed);
        let (lane, id, refs, bytes) = match wish {
            Wish::Chunk(NewChunk { id, bytes, .. }) => (Lane::of(&bytes), id, Vec::new(), bytes),
            Wish::Node(node) => {
                (Lane::of_node(node.kind), node.id, node.refs, Bytes::from(node.body))
            }
        };
        let open = &mut self.open;
        let complete = self.meters.fill.working(|| open.add(lane, id, refs, &bytes, stands_for));
        complete.into_iter().flatten().try_for_each(|block| self.hand_on(block))
    }

    fn hand_on(&self, block: PlainBlock) -> Result<(), EngineError> {
        self.shared.take_off();
        let sent = self.meters.fill.waiting_out(|| self.to_sealers.send(block));
        sent.map_err(|_| EngineError::Interrupted)
    }
}

/// Which block an object goes into.
#[derive(Clone, Copy)]
pub(super) enum Lane {
    Nodes,
    /// Interior nodes of trees: whoever compares trees or looks for a path needs most of them, and
    /// few of the leaves, which are many times as long.
    Interiors,
    Chunks,
    /// Chunks that do not compress: among others they would spoil the statistics that zstd goes by,
    /// and by themselves they need no zstd.
    Incompressible,
}

impl Lane {
    const ALL: [Self; 4] = [Self::Chunks, Self::Incompressible, Self::Nodes, Self::Interiors];

    /// The lane of a chunk.
    pub(super) fn of(bytes: &[u8]) -> Self {
        if worth_compressing(bytes) { Self::Chunks } else { Self::Incompressible }
    }

    pub(super) fn of_node(kind: NodeKind) -> Self {
        match kind {
            NodeKind::Interior => Self::Interiors,
            NodeKind::Leaf | NodeKind::List => Self::Nodes,
        }
    }

    fn kind(self) -> BlockKind {
        match self {
            Self::Nodes | Self::Interiors => BlockKind::Nodes,
            Self::Chunks | Self::Incompressible => BlockKind::Chunks,
        }
    }
}

/// The blocks that are being filled, one for each lane.
#[derive(Default)]
pub(super) struct OpenBlocks {
    nodes: OpenBlock,
    interiors: OpenBlock,
    chunks: OpenBlock,
    incompressible: OpenBlock,
}

impl OpenBlocks {
    fn at(&mut self, lane: Lane) -> &mut OpenBlock {
        match lane {
            Lane::Nodes => &mut self.nodes,
            Lane::Interiors => &mut self.interiors,
            Lane::Chunks => &mut self.chunks,
            Lane::Incompressible => &mut self.incompressible,
        }
    }

    /// Adds an object, and gives the blocks that are complete now: the one that it did not fit into,
    /// and the one that it filled.
    pub(super) fn add(
        &mut self,
        lane: Lane,
        id: ObjectId,
        refs: Vec<ObjectId>,
        bytes: &[u8],
        stands_for: Amount,
    ) -> [Option<PlainBlock>; 2] {
        let overflows = self.at(lane).would_overflow(bytes.len(), refs.len());
        let before = if overflows { self.take(lane) } else { None };
        self.at(lane).push(id, refs, bytes);
        self.at(lane).stands_for += stands_for;
        let filled = if self.at(lane).is_full() { self.take(lane) } else { None };
        [before, filled]
    }

    /// All blocks in which anything is.
    pub(super) fn into_blocks(mut self) -> impl Iterator<Item = PlainBlock> {
        Lane::ALL.into_iter().filter_map(move |lane| self.take(lane))
    }

    /// Takes the block of a lane, if anything is in it.
    fn take(&mut self, lane: Lane) -> Option<PlainBlock> {
        let OpenBlock { objects, plain, stands_for, .. } = std::mem::take(self.at(lane));
        let kind = lane.kind();
        (!objects.is_empty()).then_some(PlainBlock { kind, objects, plain, stands_for })
    }
}

/// A block that is being filled.
#[derive(Default)]
struct OpenBlock {
    objects: Vec<PlainObject>,
    plain: Vec<u8>,
    table_bytes: usize,
    stands_for: Amount,
}

impl OpenBlock {
    fn would_overflow(&self, plain_bytes: usize, refs: usize) -> bool {
        !self.objects.is_empty()
            && (self.plain.len() + plain_bytes > BLOCK_MAX_PLAIN_BYTES
                || self.table_bytes + (refs + 2) * ObjectId::LEN > 2 * TABLE_TARGET_BYTES)
    }

    fn push(&mut self, id: ObjectId, refs: Vec<ObjectId>, bytes: &[u8]) {
        if self.objects.is_empty() {
            // The same capacity for most blocks, so that the allocator can use it again.
            self.plain
                .reserve(BLOCK_TARGET_PLAIN_BYTES + bytes.len().max(BLOCK_TARGET_PLAIN_BYTES / 4));
        }
        self.table_bytes += (refs.len() + 1) * ObjectId::LEN + 2;
        self.objects.push(PlainObject { id, refs, len: bytes.len() });
        self.plain.extend_from_slice(bytes);
    }

    fn is_full(&self) -> bool {
        self.plain.len() >= BLOCK_TARGET_PLAIN_BYTES
            || self.table_bytes >= TABLE_TARGET_BYTES
            || self.objects.len() >= BLOCK_MAX_OBJECTS
    }
}
