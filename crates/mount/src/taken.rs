//! What the folders above the snapshots need to know of each.

use holdall_engine::Snapshot;
use holdall_format::{ObjectId, RecordHash};

/// A snapshot, as far as its folder says it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken<'a> {
    /// Its id.
    pub(crate) id: RecordHash,
    /// The root of its tree.
    pub(crate) root: ObjectId,
    /// The computer that it is of.
    pub(crate) host: &'a str,
    /// Its tags.
    pub(crate) tags: &'a [String],
    /// When it was taken, in nanoseconds since 1970 UTC.
    pub(crate) taken_ns: i64,
}

impl<'a> From<&'a Snapshot> for Taken<'a> {
    fn from(one: &'a Snapshot) -> Self {
        let (host, tags) = (&one.secret.host[..], &one.secret.tags[..]);
        Self { id: one.id, root: one.root, host, tags, taken_ns: one.taken_ns() }
    }
}
