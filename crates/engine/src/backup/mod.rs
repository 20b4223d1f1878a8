//! Backing up: a tree of files becomes a snapshot.
//!
//! ```text
//! walk ─► plan ─► read (open, chunk, hash) ─► storing
//!          │ parent's tree
//! ```
//!
//! The plan goes through the source and the parent snapshot in the same order and sends what is
//! unchanged straight on. Jobs of some dozen files are read in parallel and used in order; plain
//! bytes in flight are bounded by a budget that cannot deadlock. How many threads walk and read
//! follows what the storage gains from.

mod changes;
mod compare_with_parent;
pub(crate) mod content;
mod count;
mod describe;
mod file_data;
mod job;
mod listed;
pub(crate) mod meters;
mod options;
mod own_repository;
mod parents;
mod pipeline;
mod places;
mod plan;
mod produced;
mod read;
mod scan;
pub(crate) mod snapshots_place;
mod sources;
mod summary;
mod survey;
mod to_end;
mod unread;
mod walk;

pub use changes::{Changes, Place};
pub use count::count_ahead;
pub use options::{BackupOptions, FOLLOWED, Source};
pub(crate) use pipeline::series_of;

pub use pipeline::{MAX_READERS, backup, backup_upon};
pub use produced::{Produced, Producer};
pub use sources::{Misplaced, Overlap, folder_behind, misplaced, overlap, plain_path};
pub use summary::BackupSummary;
pub use survey::Survey;
