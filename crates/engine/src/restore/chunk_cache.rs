//! Opened blocks of chunks that may be asked for again, up to a bound on their bytes.
//!
//! Windows that follow each other mostly go on in the same blocks, so a few blocks are enough for a
//! snapshot that lies in one piece; for one that is scattered over many blocks no cache helps.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use holdall_crypto::OpenedBlock;
use holdall_format::ObjectId;

/// A block that is being opened or was.
pub(super) struct Slot {
    ids: Vec<ObjectId>,
    /// Nothing inside for a block that does not open. Whoever put the slot here fills it without
    /// waiting for anything, so waiting for it always ends.
    opened: OnceLock<Option<Opened>>,
}

/// The plain bytes of a block and where each object is in them.
pub(super) struct Opened(OpenedBlock);

impl Opened {
    pub(super) fn new(block: OpenedBlock) -> Self {
        Self(block)
    }

    /// An object's bytes, sharing the block's memory.
    pub(super) fn find(&self, id: &ObjectId) -> Option<Bytes> {
        let (range, plain) = (self.0.find_object(id)?.range.clone(), &self.0.plain);
        (range.start <= range.end && range.end <= plain.len()).then(|| plain.slice(range))
    }

    pub(super) fn plain_bytes(&self) -> usize {
        self.0.plain.len()
    }
}

impl Slot {
    /// The block, once it is opened.
    pub(super) fn wait(&self) -> Option<&Opened> {
        self.opened.wait().as_ref()
    }
}

/// Slots by the ids in them.
pub(super) struct ChunkCache {
    limit_bytes: usize,
    plain_bytes: usize,
    index: HashMap<ObjectId, Arc<Slot>>,
    /// Filled slots with the moment of their last use.
    filled: Vec<(u64, Arc<Slot>)>,
    now: u64,
}

impl ChunkCache {
    pub(super) fn new(limit_bytes: usize) -> Self {
        let (index, filled) = (HashMap::new(), Vec::new());
        Self { limit_bytes, plain_bytes: 0, index, filled, now: 0 }
    }

    /// The block with that object, if it is here or coming.
    pub(super) fn find(&self, id: &ObjectId) -> Option<Arc<Slot>> {
        self.index.get(id).map(Arc::clone)
    }

    /// Makes room for a block with those objects; nothing if all of them are here or coming.
    pub(super) fn announce(&mut self, ids: Vec<ObjectId>) -> Option<Arc<Slot>> {
        if ids.iter().all(|id| self.index.contains_key(id)) {
            return None;
        }
        let slot = Arc::new(Slot { ids, opened: OnceLock::new() });
        for id in &slot.ids {
            self.index.entry(*id).or_insert_with(|| Arc::clone(&slot));
        }
        Some(slot)
    }

    /// Gives an announced slot its block, and drops those least recently used over the bound.
    pub(super) fn fill(&mut self, slot: &Arc<Slot>, opened: Option<Opened>) {
        let bytes = opened.as_ref().map(Opened::plain_bytes);
        // It was announced by the only one who fills it.
        let _ = slot.opened.set(opened);
        let Some(bytes) = bytes else { return self.forget(slot) };
        self.now += 1;
        self.plain_bytes += bytes;
        self.filled.push((self.now, Arc::clone(slot)));
        while self.plain_bytes > self.limit_bytes && self.filled.len() > 1 {
            let oldest = self.filled.iter().enumerate().min_by_key(|(_, (used, _))| *used);
            let Some((at, _)) = oldest else { break };
            let (_, slot) = self.filled.swap_remove(at);
            self.plain_bytes -= slot.wait().map_or(0, Opened::plain_bytes);
            self.forget(&slot);
        }
    }

    /// Notes that a block was of use just now.
    pub(super) fn touch(&mut self, slot: &Arc<Slot>) {
        self.now += 1;
        if let Some(found) = self.filled.iter_mut().find(|(_, other)| Arc::ptr_eq(other, slot)) {
            found.0 = self.now;
        }
    }

    #[cfg(test)]
    pub(super) fn plain_bytes(&self) -> usize {
        self.plain_bytes
    }

    fn forget(&mut self, slot: &Arc<Slot>) {
        for id in &slot.ids {
            if self.index.get(id).is_some_and(|other| Arc::ptr_eq(other, slot)) {
                self.index.remove(id);
            }
        }
    }
}
