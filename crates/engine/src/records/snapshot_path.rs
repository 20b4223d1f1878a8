//! Paths in a snapshot as people and callers name them.

use holdall_tree::PathKey;

use crate::{EngineError, Snapshot};

/// The key of an absolute path, with or without a slash at its end.
pub(crate) fn key_of(path: &[u8]) -> Option<PathKey> {
    let trimmed = path.strip_suffix(b"/").unwrap_or(path);
    if trimmed.is_empty() && path == b"/" {
        return Some(PathKey::root());
    }
    PathKey::from_absolute(trimmed).ok()
}

/// The snapshot has no such path.
pub(crate) fn no_path(snapshot: &Snapshot, path: &[u8]) -> EngineError {
    let snapshot = snapshot.id.to_string().chars().take(8).collect();
    EngineError::NoPath { path: String::from_utf8_lossy(path).into_owned(), snapshot }
}
