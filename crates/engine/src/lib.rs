//! The client: turns trees of files into snapshots in a repository, and back.
//!
//! A backup pays per byte, never per file. The walk, the comparison with the snapshot before, the
//! reading, chunking, sealing and sending are stages on plain threads, joined by queues that are
//! bounded in bytes; what the repository sees is a few large sealed blocks. A restore is the same
//! way backwards. Every stage counts the time that it works and the time that it waits, and the
//! verdict on a run comes from these counters alone.
//!
//! The engine never touches the terminal, the environment or the home folder: paths, clocks,
//! randomness and the wish to stop are handed in.
//!
//! The whole of it (`examples/backup_restore.rs`):
//!
//! ```
#![doc = include_str!("../examples/backup_restore.rs")]
//! ```

mod access;
mod audit;
mod backup;
mod blocks;
mod browse;
mod cache;
#[doc(hidden)]
pub mod caches;
mod compact;
mod compare;
mod copy;
mod drill;
mod dump;
mod erased;
mod error;
mod filter;
mod fs_snapshot;
mod import;
mod item_fate;
mod new_repository;
mod pipeline;
mod probes;
mod records;
mod repair_from_copy;
mod restore;
mod run;
mod storing;
#[cfg(test)]
mod test_world;
mod verify;
mod walked;

pub use access::{LockedRepository, UnlockedRepository};
pub use audit::{AuditReport, audit};
pub use backup::{
    BackupOptions, BackupSummary, Changes, FOLLOWED, MAX_READERS, Misplaced, Overlap, Place,
    Produced, Producer, Source, Survey, backup, backup_upon, count_ahead, folder_behind, misplaced,
    overlap, plain_path,
};
pub use browse::ahead::ReadAhead;
pub use browse::changes::{Aspect, ChangeKind, EntryChange};
pub use browse::diff::{ChangedEntry, DiffSummary, diff};
pub use browse::find::{FoundEntry, find};
pub use browse::hard_links::{HardLink, HardLinks};
pub use browse::history::{Version, history};
pub use browse::listing::{ListedEntry, list};
pub use browse::numbered::{Children, NumberedEntry, ROOT_NUMBER};
pub use browse::on_demand::OnDemand;
pub use browse::viewer::{FileView, Viewer};
pub use cache::private_folder::make_private;
pub use compact::{CompactReport, compact};
pub use compare::{CompareOptions, CompareReport, Difference, compare};
pub use copy::{Copied, Copier, CopyOptions, CopySummary};
pub use drill::{Compared, DrillLimits, DrillPart, DrillSample, Measured, estimate};
pub use dump::{Dump, DumpSummary};
pub use erased::erased_text;
pub use error::EngineError;
pub use filter::exclude::ExcludeRules;
pub use filter::patterns::{Met, PatternError, Patterns};
pub use fs_snapshot::{FsSnapshot, FsSnapshotError, FsSnapshotNote, take_fs_snapshot};
pub use import::{Entries, ForeignSnapshot, ForeignTree, Found, FoundContent, Imported, Importer};
pub use item_fate::ItemFate;
pub use new_repository::{new_repository, remade_repository, with_new_config};
pub use probes::{Samples, content_probe, cpu_probes};
pub use records::amend::{Amendment, amend};
pub use records::chains::{BreakKind, ChainBreak};
pub use records::gone::{GoneRecord, give_up};
pub use records::put_back::{RecordRepairs, put_back_record_at, put_back_records};
pub use records::record_list::{PutBack, each_record_behind, gone_records, remember_tombstones};
pub use records::snapshot::{DamagedRecord, Snapshot};
pub use records::snapshots::{
    Forgotten, Listed, find_snapshot, newest_with, snapshots, snapshots_by_cache,
};
pub use records::whose_latest::whose_latest;
pub use repair_from_copy::{CopyRepairReport, RepairedSnapshot, repair_from_copy};
pub use restore::{
    DeleteIn, Extra, Extras, InPlace, Overwrite, RestoreOptions, RestoreSummary, Selected,
    Selection, is_directory_at, newest_of_each_series, restore,
};
pub use run::{Problem, Run};
pub use storing::PUT_TARGET_BYTES;
// What listings and comparisons show.
pub use holdall_tree::{Attributes, Content, Entry, EntryKind, PathError, PathKey, Time};
pub use verify::{DamagedPath, Verify, VerifyProgress, VerifyReport, verify};
pub use walked::{FullWalk, Walked};
