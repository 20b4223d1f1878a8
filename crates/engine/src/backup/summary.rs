//! What a backup did.

use bytes::Bytes;
use holdall_format::RecordHash;
use holdall_meter::StageCounters;

use crate::storing::Counts;
use crate::walked::Walked;

/// What a backup did, counted by its stages.
#[derive(Debug, Clone, Default)]
pub struct BackupSummary {
    /// The new snapshot; `None` for a dry run.
    pub snapshot_id: Option<RecordHash>,
    /// The record as the repository stored it, with its receipt: what to remember.
    pub stored_record: Bytes,
    /// Whether there was an earlier snapshot of the series to compare with.
    pub has_parent: bool,
    /// How it found out what changed. By the journal, what rules leave out is only counted where it looked.
    pub walked: Walked,
    /// Files (all that is no directory) that the parent does not have.
    pub files_new: u64,
    /// Files that differ from the parent's.
    pub files_changed: u64,
    /// Files as they are in the parent.
    pub files_unmodified: u64,
    /// Directories that the parent does not have.
    pub dirs_new: u64,
    /// Directories whose own metadata differs.
    pub dirs_changed: u64,
    /// Directories as they are in the parent.
    pub dirs_unmodified: u64,
    /// All items.
    pub items: u64,
    /// Bytes of all files, with holes.
    pub bytes: u64,
    /// Leaves of the parent that were taken over whole, neither fetched nor built again.
    pub leaves_adopted: u64,
    /// Plain bytes of objects that the repository did not have; for a dry run, of files to be read.
    pub data_added: u64,
    /// The same, sealed.
    pub data_stored: u64,
    /// What of that is headers and ids.
    pub stored_ids: u64,
    /// What of that is padding, which hides lengths.
    pub stored_padding: u64,
    /// What of that is blocks of directories and lists, with their headers, ids and padding, and with
    /// contents that are small enough to lie in them.
    pub stored_nodes: u64,
    /// Bytes sent over the wire since the repository was reached, or since the backup before this
    /// one over the same access: handshakes and everything else around them too.
    pub bytes_sent: u64,
    /// Bytes received, counted in the same way.
    pub bytes_received: u64,
    /// How long it took.
    pub seconds: f64,
    /// What could not be read.
    pub problems: u64,
    /// Objects that the repository had lost, and that were sent again.
    pub objects_sent_again: u64,
    /// Whether the snapshot before is damaged, so that everything was read anew: what is damaged was not sent
    /// again, since it counts as stored.
    pub parent_damaged: bool,
    /// Files that changed while they were read: stored as read, and read again next time.
    pub files_unsettled: u64,
    /// Files and the like that were gone before they were read.
    pub files_vanished: u64,
    /// Paths that rules leave out; what lies below them is not counted.
    pub items_left_out: u64,
    /// Of these, files that are too large.
    pub files_too_large: u64,
    /// Their bytes.
    pub bytes_too_large: u64,
    /// Patterns and marks that met nothing, as they were given.
    pub rules_unmatched: Vec<String>,
    /// The stages' counters, in the order of the pipeline.
    pub stages: Vec<StageCounters>,
}

impl From<Counts> for BackupSummary {
    fn from(counts: Counts) -> Self {
        Self {
            files_new: counts.files_new,
            files_changed: counts.files_changed,
            files_unmodified: counts.files_unmodified,
            dirs_new: counts.dirs_new,
            dirs_changed: counts.dirs_changed,
            dirs_unmodified: counts.dirs_unmodified,
            items: counts.items,
            bytes: counts.bytes,
            leaves_adopted: counts.leaves_adopted,
            items_left_out: counts.items_left_out,
            files_too_large: counts.files_too_large,
            bytes_too_large: counts.bytes_too_large,
            ..Self::default()
        }
    }
}
