//! Storing: asks which objects are missing, thousands at a time, and fills blocks with those.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender};
use holdall_crypto::PlainObject;
use holdall_format::limits::{
    BLOCK_MAX_OBJECTS, BLOCK_MAX_PLAIN_BYTES, BLOCK_TARGET_PLAIN_BYTES, TABLE_TARGET_BYTES,
};
use holdall_format::{BlockKind, ObjectId, SessionId};
use holdall_protocol::Repository;
use holdall_tree::BuiltNode;

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
    pub(super) nodes: OpenBlock,
    pub(super) chunks: OpenBlock,
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
                    self.close(BlockKind::Chunks)?;
                    self.close(BlockKind::Nodes)?;
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
        let (kind, id, refs, bytes) = match object {
            Pending::Chunk(chunk) => (BlockKind::Chunks, chunk.id, Vec::new(), chunk.bytes),
            Pending::Node(node) => (BlockKind::Nodes, node.id, node.refs, Bytes::from(node.body)),
        };
        if self.open(kind).would_overflow(bytes.len(), refs.len()) {
            self.close(kind)?;
        }
        let meters = self.meters;
        let open = self.open(kind);
        meters.fill.working(|| open.push(id, refs, &bytes));
        if open.is_full() { self.close(kind) } else { Ok(()) }
    }

    fn open(&mut self, kind: BlockKind) -> &mut OpenBlock {
        if kind == BlockKind::Nodes { &mut self.nodes } else { &mut self.chunks }
    }

    fn close(&mut self, kind: BlockKind) -> Result<(), EngineError> {
        let OpenBlock { objects, plain, .. } = std::mem::take(self.open(kind));
        if objects.is_empty() {
            return Ok(());
        }
        self.shared.take_off();
        let block = PlainBlock { kind, objects, plain };
        let sent = self.meters.fill.waiting_out(|| self.to_sealers.send(block));
        sent.map_err(|_| EngineError::Interrupted)
    }
}

/// A block that is being filled.
#[derive(Default)]
pub(super) struct OpenBlock {
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
