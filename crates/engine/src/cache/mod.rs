//! What a client keeps beside the repository to be quicker. All of it can be deleted: it comes back.
//!
//! `private_folder` makes the folder, `record_cache` keeps records, `node_cache` tree nodes, and `leaf_cache` the
//! fingerprints of leaves that the last backup stored. `recent` is the bounded map of the ones that stay in memory.

pub(crate) mod leaf_cache;
pub(crate) mod node_cache;
pub(crate) mod private_folder;
pub(crate) mod recent;
pub(crate) mod record_cache;
