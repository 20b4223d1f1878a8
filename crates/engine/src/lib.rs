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
mod amend;
mod audit;
mod backup;
mod blocks;
mod budget;
#[doc(hidden)]
pub mod caches;
mod chains;
mod changes;
mod checked_records;
mod compact;
mod compare;
mod concurrency;
mod copy;
mod diff;
mod dump;
mod error;
mod exclude;
mod find;
mod hill_climb;
mod history;
mod keepers;
mod leaf_cache;
mod let_go;
mod listing;
mod lost;
mod mend;
mod node_cache;
mod patterns;
mod private_folder;
mod probes;
mod recent;
mod record;
mod record_cache;
mod record_list;
mod record_mend;
mod request_meters;
mod restore;
mod run;
mod snapshot;
mod snapshot_path;
mod snapshots;
mod sound_records;
mod stage;
mod storing;
#[cfg(test)]
mod test_world;
mod verify;

pub use access::{Access, Place};
pub use amend::{Amendment, amend};
pub use audit::{AuditReport, audit};
pub use backup::{
    BackupOptions, BackupSummary, FOLLOWED, MAX_READERS, Source, backup, backup_upon, count_ahead,
};
pub use chains::{BreakKind, ChainBreak};
pub use changes::{Aspect, ChangeKind, EntryChange};
pub use compact::{CompactReport, compact};
pub use compare::{CompareOptions, CompareReport, Difference, compare};
pub use copy::{Copied, Copier, CopyOptions, CopySummary};
pub use diff::{ChangedEntry, DiffSummary, diff};
pub use dump::{Dump, DumpSummary};
pub use error::EngineError;
pub use exclude::ExcludeRules;
pub use find::{FoundEntry, find};
pub use history::{Version, history};
pub use listing::{ListedEntry, list};
pub use mend::{MendReport, MendedSnapshot, mend};
pub use patterns::{Met, PatternError, Patterns};
pub use private_folder::make_private;
pub use probes::{Samples, content_probe, cpu_probes};
pub use record_list::each_record_behind;
pub use record_mend::put_back_records;
pub use restore::{Overwrite, RestoreOptions, RestoreSummary, Selected, Selection, restore};
pub use run::{Problem, Run};
pub use snapshot::{DamagedRecord, Snapshot};
pub use snapshots::{Forgotten, Listed, find_snapshot, newest_with, snapshots, snapshots_by_cache};
pub use storing::PUT_TARGET_BYTES;
pub use verify::{DamagedPath, Verify, VerifyProgress, VerifyReport, verify};
