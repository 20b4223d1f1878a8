//! What a snapshot holds at a path.

use holdall_tree::Entry;

use crate::{Access, EngineError, Snapshot};

/// One entry of a listing.
#[derive(Debug, Clone, Copy)]
pub struct ListedEntry<'a> {
    /// Its absolute path, any bytes.
    pub path: &'a [u8],
    /// What is known of it.
    pub entry: &'a Entry,
}

/// Shows what is at an absolute path: a directory's direct children, or everything below it where
/// `recursive` is set; for anything else the entry itself.
///
/// # Errors
/// [`EngineError::NoPath`] if nothing is there; the first error of `visit`.
pub fn list(
    access: &Access,
    snapshot: &Snapshot,
    path: &[u8],
    recursive: bool,
    visit: &mut dyn FnMut(ListedEntry<'_>) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let _ = (access, snapshot, path, recursive, visit);
    unimplemented!()
}
