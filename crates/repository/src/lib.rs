//! Keyless storage of a repository in a directory: what a server keeps, and what a client without a
//! server uses in-process.
//!
//! Whoever keeps a repository is not trusted with its content. This crate sees names, reference
//! lists, sealed bytes and signatures, never a key, and with those alone promises the following:
//! what was acknowledged is durable and is found again; a snapshot is published only when everything
//! that it reaches is there; nothing is overwritten, and nothing deleted that a snapshot reaches which
//! was not forgotten; what was damaged is told, not hidden.
//!
//! ```text
//! put ──> tail (payload + journal, one fsync for all who wait) ──> pack ──> index run
//! commit ──> descent from the root through the index ──> records/<log position>
//! ```
//!
//! [`Store`] is one open directory, shared by all of its machines; [`EmbeddedRepository`] is what one
//! machine may do with it, an implementation of [`holdall_protocol::Repository`]. Everything that is
//! not in the directory (the index, what is closed) can be made anew from it.
//!
//! Operations beside each other, on one store:
//!
//! | | put | commit | fetch, missing | scrub | forget | prune |
//! | --- | --- | --- | --- | --- | --- | --- |
//! | put | bytes in turn, fsync shared | free | free | free | free | waits while packs leave the index |
//! | commit | free | in turn | free | waits for its closure walk | waits | waits for the mark, and for each pack that is condemned |
//!
//! ```
//! use holdall_format::{MachineId, PublicKey, ReceiptSigner, Signature, SignedContext};
//! use holdall_protocol::{Repository, RepositoryError};
//! use holdall_repository::EmbeddedRepository;
//! use holdall_sys::SystemClock;
//! use std::{path::Path, sync::Arc};
//!
//! struct NoKey;
//! impl ReceiptSigner for NoKey {
//!     fn public(&self) -> PublicKey { PublicKey::from_bytes([0; 32]) }
//!     fn sign(&self, _: SignedContext, _: &[u8]) -> Signature { Signature::from_bytes([0; 64]) }
//! }
//!
//! let (machine, key) = (MachineId::from_bytes([1; 16]), NoKey.public());
//! let dir = Path::new("/nonexistent/repository");
//! let repository =
//!     EmbeddedRepository::at(dir, Path::new("/nonexistent"), machine, key, Arc::new(NoKey), Arc::new(SystemClock));
//! assert!(matches!(repository.describe(), Err(RepositoryError::NoRepository { .. })));
//! ```

mod append;
#[cfg(feature = "decoders")]
pub mod decoders;
mod embedded;
mod erase;
#[cfg(test)]
mod failing_calls;
mod index;
mod log;
mod opening;
mod operations;
mod pack_file;
mod parity;
#[cfg(test)]
mod place;
mod prune;
mod reachability;
mod records;
mod repair;
pub mod retention;
mod scrub;
mod settling;
mod state_files;
mod storage;
mod store;
mod tails;

pub use embedded::EmbeddedRepository;
pub use erase::{ErasedFiles, Erasing, erase, erased_in, is_anything_left};
pub use opening::probe::lacking;
pub use opening::session::Sessions;
pub use opening::unopened::{
    newest_generation_in, newest_key_in, newest_wrappings_in, recovery_identities_in,
    recovery_identities_of_new,
};
pub use operations::anomaly::{Scan, SeriesChange, SnapshotSize};
pub use operations::commit::EARLIEST_NS;
pub use operations::compact::Supersession;
pub use operations::usage::{Census, Listed};
pub use prune::PruneOptions;
pub use retention::judge::Judged;
pub use settling::{Settled, clear_places, packs_in_place};
pub use state_files::scrub_round::ScrubRound;
pub use storage::placed::{PackPlace, make_place, place_id};
pub use storage::publish::{make_dirs, rename_no_replace, sync_dir, sync_folder};
pub use store::Store;
pub use store::quota_reservations::Shortage;
