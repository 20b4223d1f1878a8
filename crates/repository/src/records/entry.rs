//! What is kept in memory of a record, for as long as its repository is open.

use holdall_format::{
    MachineId, ObjectId, RecordHash, RecordHead, RecordKind, SeriesId, StoredRecord, TagToken,
    Tombstone,
};

/// What a machine's first record has as its previous one.
pub(crate) const NO_RECORD: RecordHash = RecordHash::from_bytes([0; RecordHash::LEN]);

/// What is kept in memory of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordEntry {
    /// Its log position.
    pub(crate) position: u64,
    /// Its hash.
    pub(crate) hash: RecordHash,
    /// Whose it is.
    pub(crate) machine: MachineId,
    /// Its place in the machine's chain.
    pub(crate) sequence: u64,
    /// The one before it there; zero for the first.
    pub(super) previous: RecordHash,
    /// What it belongs to in retention.
    pub(crate) series: SeriesId,
    /// The root of its tree.
    pub(crate) root: ObjectId,
    /// Snapshot, checkpoint or amendment.
    pub(crate) kind: RecordKind,
    /// Whether retention must keep it, if nothing amended it.
    pub(crate) pinned: bool,
    /// Tokens of its tags, if nothing amended it.
    pub(crate) tags: Vec<TagToken>,
    /// The record that it amends.
    pub(crate) amends: Option<RecordHash>,
    /// Of a copy: when its machine says that the original was received, in nanoseconds since 1970 UTC.
    pub(crate) taken_ns: Option<i64>,
    /// When it came, in nanoseconds since 1970 UTC; when it was forgotten, for one that was.
    pub(crate) received_ns: i64,
    /// Whether the clock that said so had been set.
    pub(crate) clock_sure: bool,
    /// Length of its file.
    pub(crate) stored_bytes: u64,
    /// Whether only its tombstone is left.
    pub(crate) forgotten: bool,
}

impl RecordEntry {
    pub(super) fn of(stored: &StoredRecord, bytes: &[u8]) -> Self {
        let receipt = &stored.receipt;
        Self {
            received_ns: receipt.received_ns,
            clock_sure: receipt.clock_sure,
            ..Self::new(&stored.record.head, receipt.log_position, receipt.record, bytes.len())
        }
    }

    pub(super) fn of_tombstone(tombstone: &Tombstone, head: &RecordHead, bytes: &[u8]) -> Self {
        Self {
            received_ns: tombstone.forgotten_ns,
            forgotten: true,
            ..Self::new(head, tombstone.log_position, tombstone.record, bytes.len())
        }
    }

    /// What the head says; when it was received and whether it was forgotten is the caller's to add.
    fn new(head: &RecordHead, position: u64, hash: RecordHash, stored_bytes: usize) -> Self {
        Self {
            position,
            hash,
            machine: head.machine,
            sequence: head.sequence,
            previous: head.previous,
            series: head.series,
            root: head.root,
            kind: head.kind,
            pinned: head.pinned,
            tags: head.tags.clone(),
            amends: head.amends,
            taken_ns: head.taken_ns,
            received_ns: 0,
            clock_sure: false,
            stored_bytes: stored_bytes as u64,
            forgotten: false,
        }
    }
}
