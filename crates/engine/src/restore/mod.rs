//! Restoring: a snapshot's tree becomes files again.
mod options;
use std::path::Path;
pub use options::{Overwrite, RestoreOptions, RestoreSummary, Selected, Selection};
use crate::{Access, EngineError, Run, Snapshot};

/// Restores a snapshot into the directory `target`, which is made if it is missing: the absolute
/// paths below it, or, where `path` is given, what is at that path itself: a directory's content,
/// or a file under its name.
///
/// What can not be restored is noted with [`Run::problem`] and the rest goes on.
///
/// # Errors
/// [`EngineError::Path`] if the target can not be used or holds something; [`EngineError::NoPath`];
/// [`EngineError::Interrupted`]; [`EngineError::Repository`] if the repository is lost.
pub fn restore(
    access: &Access,
    snapshot: &Snapshot,
    path: Option<&[u8]>,
    target: &Path,
    options: &RestoreOptions,
    run: &Run,
) -> Result<RestoreSummary, EngineError> {
    let _ = (access, snapshot, path, target, options, run);
    unimplemented!()
}
