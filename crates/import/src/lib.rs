//! Repositories of other programs, as far as importing their snapshots takes: those of restic, in a directory.
//!
//! ```text
//! directory (reads files) ─> rustic_core (keys, index, blobs) ─> repository ─> tree, node, content ─> engine
//! ```
//!
//! What restic wrote is decoded by `rustic_core`. This crate turns its trees into entries in the order of ours, and its lists
//! of blobs into readers; it says what is as in an earlier snapshot, so that it need not be read. It stores nothing: that is
//! the engine's. Nothing in the other repository is ever written, locked or deleted, so that it may lie on a disk that is
//! mounted to be read only; a `restic prune` meanwhile takes away what this reads, which is told as damage.

mod error;
#[cfg(not(feature = "restic"))]
mod no_restic;
mod snapshot;

#[cfg(feature = "restic")]
mod content;
#[cfg(feature = "restic")]
mod directory;
#[cfg(feature = "restic")]
mod indexed;
#[cfg(feature = "restic")]
mod node;
#[cfg(feature = "restic")]
mod nodes;
#[cfg(feature = "restic")]
mod places;
#[cfg(feature = "restic")]
mod repository;
#[cfg(feature = "restic")]
mod tree;

pub use error::ImportError;
#[cfg(not(feature = "restic"))]
pub use no_restic::ResticRepository;
#[cfg(feature = "restic")]
pub use repository::ResticRepository;
pub use snapshot::{ResticSnapshot, UnreadKind, UnreadSnapshot};
