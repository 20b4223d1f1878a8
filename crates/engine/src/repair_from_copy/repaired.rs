//! What was put to repair a repository, or would be.

use holdall_format::ObjectId;

/// Objects that were put, or would be.
#[derive(Debug, Default)]
pub(super) struct Repaired {
    pub(super) objects: u64,
    /// Plain.
    pub(super) bytes: u64,
    pub(super) chunks: Vec<ObjectId>,
    /// With what they refer to.
    pub(super) nodes: Vec<(ObjectId, Vec<ObjectId>)>,
}

impl Repaired {
    pub(super) fn add_chunk(&mut self, id: ObjectId, bytes: u64) {
        self.chunks.push(id);
        self.objects += 1;
        self.bytes += bytes;
    }

    pub(super) fn add_node(&mut self, id: ObjectId, refs: Vec<ObjectId>, bytes: u64) {
        self.nodes.push((id, refs));
        self.objects += 1;
        self.bytes += bytes;
    }
}
