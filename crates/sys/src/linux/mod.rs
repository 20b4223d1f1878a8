//! Everything that is Linux: a concern a file.

pub mod aligned;
pub mod cpu;
pub(crate) mod dir;
pub mod disk;
pub mod heap;
pub mod host;
pub mod limits;
pub mod listing;
pub mod lock;
pub mod memory;
pub mod metadata;
pub mod mounts;
pub mod page_cache;
pub(crate) mod proc_path;
pub mod process;
pub mod raw_file;
pub mod reading;
pub mod removal;
pub mod ring;
pub mod sparse;
pub mod stat;
pub(crate) mod target;
pub mod tcp;
pub mod thread;
pub mod users;
pub mod xattr;
