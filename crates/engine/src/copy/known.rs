//! Chunks that were copied before, so that they need not be fetched again: those of files that were
//! moved, of hard links, of content that a source has often.

use std::sync::Mutex;

use holdall_format::ObjectId;
use holdall_tree::ChunkRef;

use crate::cache::recent::Recent;
use crate::run::lock;

/// Chunks that are remembered: about 16 MiB.
const KNOWN_CHUNKS: usize = 128 << 10;

/// The last chunks that were copied: ids in the source, and chunks of the destination.
pub(super) struct Known(Mutex<Recent<ChunkRef>>);

impl Known {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Recent::new(KNOWN_CHUNKS)))
    }

    /// The chunk as the destination has it, or will before whatever comes behind it.
    pub(super) fn find(&self, chunk: &ChunkRef) -> Option<ChunkRef> {
        lock(&self.0).find(&chunk.id).filter(|known| known.len_bytes == chunk.len_bytes).copied()
    }

    /// Notes chunks.
    pub(super) fn extend(&self, chunks: impl Iterator<Item = (ObjectId, ChunkRef)>) {
        let mut known = lock(&self.0);
        chunks.for_each(|(id, chunk)| {
            known.insert(id, chunk);
        });
    }

    /// Forgets all: what was on its way may not have arrived.
    pub(super) fn clear(&self) {
        *lock(&self.0) = Recent::new(KNOWN_CHUNKS);
    }
}
