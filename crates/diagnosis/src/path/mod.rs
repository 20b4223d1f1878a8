//! The whole path of a backup, step by step, and a real backup beside it.
//!
//! A repository is append-only: a backup to measure with would stay in it for as long as its rules
//! keep snapshots. So the backups that are measured go into a temporary repository, and the repository
//! to which the path leads is not opened at all. Of a directory, the temporary repository lies beside it,
//! on the same disk. Of a server, every request of the backup goes over the wire with as many bytes, and
//! the server writes what would be stored to its disk, makes it durable and forgets it (`wire`); only
//! its index is kept here, in memory where there is room.

mod client;
mod error;
mod ladder;
mod looks;
mod measuring;
mod pipeline;
mod ran;
mod sent;
mod steps;
mod target;
mod wire;

pub use client::{Client, PutBehind, Telling};
pub use error::PathError;
pub use ladder::Climbed;
pub use measuring::Measuring;
pub use pipeline::MEMORY_DIR;
pub use ran::Ran;
pub use target::{Target, beside, plan};
