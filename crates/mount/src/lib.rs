//! The snapshots as a file system: all of them as folders, only to be read, by way of FUSE.
//!
//! ```text
//! kernel ── fuser ──> filesystem ──> catalogue (folders above the snapshots)
//!                         |────────> pages (entries that were listed last) ──> engine: Viewer
//!                         '────────> engine: ReadAhead (content, blocks ahead)
//! ```
//!
//! Nothing is kept for a file: its inode says which snapshot it is in and its number in the order of the tree (`inode`), so
//! memory does not grow with what is looked at. All that is in a snapshot never changes, so that the kernel may keep it for
//! as long as it likes; only the folders above the snapshots are asked for again.

mod error;
mod options;

#[cfg(feature = "fuse")]
mod attributes;
#[cfg(feature = "fuse")]
mod catalogue;
#[cfg(feature = "fuse")]
mod failed_reads;
#[cfg(feature = "fuse")]
mod filesystem;
#[cfg(feature = "fuse")]
mod inode;
#[cfg(feature = "fuse")]
mod listing;
#[cfg(feature = "fuse")]
mod mounted;
#[cfg(feature = "fuse")]
mod names;
#[cfg(not(feature = "fuse"))]
mod no_fuse;
#[cfg(feature = "fuse")]
mod pages;
#[cfg(feature = "fuse")]
mod shared;
#[cfg(feature = "fuse")]
mod taken;
#[cfg(feature = "fuse")]
mod troubles;
#[cfg(feature = "fuse")]
mod unmount;
#[cfg(feature = "fuse")]
mod view;

pub use error::MountError;
#[cfg(feature = "fuse")]
pub use mounted::Mounted;
#[cfg(not(feature = "fuse"))]
pub use no_fuse::Mounted;
pub use options::{MountOptions, Trouble};
