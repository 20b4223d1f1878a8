//! What lies in a folder of caches, looked at as a backup does: for tests and fuzz targets that put
//! hostile bytes there. No part of what a program uses, which is why the documentation leaves it out.

use std::path::Path;

use holdall_format::{ObjectId, SeriesId};
use holdall_tree::Fingerprints;

use crate::audit;
use crate::cache::leaf_cache::KnownLeaves;
use crate::cache::node_cache::NodeCache;
use crate::cache::record_cache::RecordCache;

/// The series whose leaves are looked for.
pub const SERIES: SeriesId = SeriesId::from_bytes([2; 16]);
/// What its leaves are remembered with.
const LEAF_KEY: [u8; 32] = [3; 32];
/// A moment far from that of every file: all that is remembered is due.
const NOW_NS: i64 = i64::MAX;

/// How much was found, of what each file keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheHits {
    /// Nodes, in `nodes`.
    pub nodes: usize,
    /// Leaves with a fingerprint, in that of [`SERIES`].
    pub leaves: usize,
    /// Records, in `records`.
    pub records: usize,
    /// Blocks that are remembered, in `blocks`.
    pub blocks: usize,
}

impl CacheHits {
    /// Opens every cache in `folder` and looks there for `ids`, the first of which is the root of a
    /// snapshot.
    pub fn within(folder: &Path, ids: &[ObjectId]) -> Self {
        let nodes = NodeCache::open(folder)
            .map_or(0, |cache| ids.iter().filter(|id| cache.find(id).is_some()).count());
        let root = ids.first();
        let fingerprints = Fingerprints::new(LEAF_KEY, [0; 32], 1);
        let leaves = root.and_then(|root| KnownLeaves::open(folder, &SERIES, root, fingerprints));
        let leaves =
            leaves.map_or(0, |mut known| ids.iter().filter(|id| known.find(id).is_some()).count());
        let records = RecordCache::within(folder).load().len();
        Self { nodes, leaves, records, blocks: audit::count_remembered(folder, NOW_NS) }
    }
}
