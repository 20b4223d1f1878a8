//! Storing: asks which objects are missing, thousands at a time, and fills blocks with those.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender};
use holdall_crypto::{PlainObject, worth_compressing};
use holdall_format::limits::{
    BLOCK_MAX_OBJECTS, BLOCK_MAX_PLAIN_BYTES, BLOCK_TARGET_PLAIN_BYTES, TABLE_TARGET_BYTES,
};
use holdall_format::{BlockKind, ObjectId, SessionId};
use holdall_protocol::Repository;
use holdall_tree::{BuiltNode, NodeKind};

use super::meters::StoringMeters;
use super::piece::NewChunk;
use super::shared::Shared;
use crate::EngineError;
use crate::recent::Recent;

/// Objects asked for at once.
const ASK_MAX_IDS: usize = 4096;
/// Plain bytes that wait for an answer at most: a quarter of the budget, so that reading goes on.
const ASK_MAX_BYTES: usize = 4 << 20;
/// Ids of objects on their way that are remembered, so that a second copy is not sent behind them.
pub(super) const RECENT_IDS: usize = 64 << 10;

/// What the assembler wants stored.
pub(super) enum Wanted {
    Chunk(NewChunk),
    Node(BuiltNode),
    /// Send everything that was wanted before, then note it.
    Flush,
}

/// Plain objects that will be sealed together.
pub(super) struct PlainBlock {
    pub(super) kind: BlockKind,
    pub(super) objects: Vec<PlainObject>,
    pub(super) plain: Vec<u8>,
}

/// The storing thread.
pub(super) struct Store<'a> {
    pub(super) repository: &'a dyn Repository,
    pub(super) session: SessionId,
    pub(super) shared: &'a Shared<'a>,
    pub(super) meters: &'a StoringMeters,
    pub(super) to_sealers: Sender<PlainBlock>,
    /// What is on its way.
    pub(super) recent: Recent<()>,
    pub(super) open: OpenBlocks,
    /// Plain bytes of what the repository did not have.
    pub(super) added_bytes: &'a AtomicU64,
}

enum Pending {
    Chunk(NewChunk),
    Node(BuiltNode),
}

impl Pending {
    fn id(&self) -> ObjectId {
        match self {
            Self::Chunk(chunk) => chunk.id,
            Self::Node(node) => node.id,
        }
    }

    fn len_bytes(&self) -> usize {
        match self {
            Self::Chunk(chunk) => chunk.bytes.len(),
            Self::Node(node) => node.body.len(),
        }
    }
}

impl Store<'_> {
    /// Stores what is wanted until nobody wants anything more: the body of the storing thread.
    ///
    /// # Errors
    /// What the repository answers.
    pub(super) fn run(&mut self, wanted: &Receiver<Wanted>) -> Result<(), EngineError> {
        let mut pending = Vec::with_capacity(ASK_MAX_IDS);
        let mut pending_bytes = 0;
        while let Ok(next) = self.meters.fill.waiting_in(|| wanted.recv()) {
            let object = match next {
                Wanted::Chunk(chunk) => Pending::Chunk(chunk),
                Wanted::Node(node) => Pending::Node(node),
                Wanted::Flush => {
                    self.ask(std::mem::take(&mut pending))?;
                    pending_bytes = 0;
                    Lane::ALL.into_iter().try_for_each(|lane| self.close(lane))?;
                    self.shared.flushed();
                    continue;
                }
            };
            pending_bytes += object.len_bytes();
            pending.push(object);
            if pending.len() >= ASK_MAX_IDS || pending_bytes >= ASK_MAX_BYTES {
                self.ask(std::mem::take(&mut pending))?;
                pending_bytes = 0;
            }
        }
        Ok(())
    }

    fn ask(&mut self, pending: Vec<Pending>) -> Result<(), EngineError> {
        if pending.is_empty() {
            return Ok(());
        }
        let ids: Vec<ObjectId> = pending.iter().map(Pending::id).collect();
        let missing = self.meters.ask.working(|| self.repository.missing(&self.session, &ids))?;
        for (object, missing) in pending.into_iter().zip(missing) {
            if missing && self.recent.insert(object.id(), ()) {
                self.add(object)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, object: Pending) -> Result<(), EngineError> {
        self.added_bytes.fetch_add(object.len_bytes() as u64, Ordering::Relaxed);
        let (lane, id, refs, bytes) = match object {
            Pending::Chunk(NewChunk { id, bytes, .. }) => (Lane::of(&bytes), id, Vec::new(), bytes),
            Pending::Node(node) => {
                (Lane::of_node(&node), node.id, node.refs, Bytes::from(node.body))
            }
        };
        if self.open.at(lane).would_overflow(bytes.len(), refs.len()) {
            self.close(lane)?;
        }
        let open = self.open.at(lane);
        self.meters.fill.working(|| open.push(id, refs, &bytes));
        if open.is_full() { self.close(lane) } else { Ok(()) }
    }

    fn close(&mut self, lane: Lane) -> Result<(), EngineError> {
        let OpenBlock { objects, plain, .. } = std::mem::take(self.open.at(lane));
        if objects.is_empty() {
            return Ok(());
        }
        self.shared.take_off();
        let block = PlainBlock { kind: lane.kind(), objects, plain };
        let sent = self.meters.fill.waiting_out(|| self.to_sealers.send(block));
        sent.map_err(|_| EngineError::Interrupted)
    }
}

/// Which block an object goes into.
#[derive(Clone, Copy)]
enum Lane {
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
    fn of(bytes: &[u8]) -> Self {
        if worth_compressing(bytes) { Self::Chunks } else { Self::Incompressible }
    }

    fn of_node(node: &BuiltNode) -> Self {
        match node.kind {
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
}

/// A block that is being filled.
#[derive(Default)]
struct OpenBlock {
    objects: Vec<PlainObject>,
    plain: Vec<u8>,
    table_bytes: usize,
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
