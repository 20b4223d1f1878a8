//! What a window of a restore orders, and what it gets.

use bytes::Bytes;
use crossbeam_channel::Sender;
use holdall_tree::ChunkRef;

/// A chunk's bytes, or why they cannot be had.
pub(crate) type Chunk = Result<Bytes, String>;

/// Chunks that a window needs.
pub(crate) struct Order {
    pub(super) window: u64,
    pub(super) chunks: Vec<ChunkRef>,
    pub(super) reply: Sender<Vec<Chunk>>,
}
