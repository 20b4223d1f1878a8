//! The signed records of snapshots and of tags and pins, by their positions.
//!
//! `files` reads and names the files in `records` and `tombstones`, `entry` is what is in memory of one, `entries` keeps which follows which, `claim` says
//! how well a record shows that it was here, and `parallel` reads many small files at once.

pub(crate) mod claim;
pub(crate) mod entries;
pub(crate) mod entry;
pub(crate) mod files;
pub(crate) mod parallel;
