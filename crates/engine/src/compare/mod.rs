//! Comparing a restored tree with its source, by what the file system says of both.
//!
//! `try` claims that a restore is identical; this is what the claim rests on, so nothing here knows
//! of snapshots, trees or ids. Both trees are walked side by side through directory descriptors, a
//! directory at a time, on a few threads; what differs and changed since the backup began is told
//! apart from what differs for no such reason.

mod content;
mod entry;
mod report;
mod walk;

use std::path::Path;

use holdall_sys::{Dir, users};

pub use report::{CompareOptions, CompareReport, Difference};

use crate::{EngineError, Run};
use entry::Rights;
use walk::{Comparison, Pair};

/// Threads that compare: most of their time is system calls.
const THREADS: usize = 2;

/// Compares the directory `source` with the directory `restored`, entry by entry: kinds, modes,
/// owners, modification times, attributes, link targets, device numbers, hard links and content.
///
/// An ordinary user's restore lacks what only root may set: owners, devices and privileged
/// attributes are then not compared.
///
/// # Errors
/// [`EngineError::Path`] if one of the two cannot be opened; [`EngineError::Interrupted`].
pub fn compare(
    source: &Path,
    restored: &Path,
    options: &CompareOptions<'_>,
    run: &Run,
) -> Result<CompareReport, EngineError> {
    let source = source.canonicalize().map_err(|error| cannot_open(source, &error))?;
    let top = Pair { source: open(&source)?, restored: open(restored)?, path: Vec::new() };
    // A chain of directories is held open from its top to its end; if the system grants no more
    // descriptors, a shorter chain still works.
    let _ = holdall_sys::limits::raise_open_files();
    let rights = Rights { privileged: users::effective_uid() == 0 };
    let comparison = Comparison::new(&source, *options, rights, run);
    comparison.walk(top, THREADS)?;
    Ok(comparison.into_report())
}

fn open(path: &Path) -> Result<Dir, EngineError> {
    use std::os::unix::ffi::OsStrExt;
    let open = || Dir::open_absolute(std::path::absolute(path)?.as_os_str().as_bytes());
    open().map_err(|error| cannot_open(path, &error))
}

fn cannot_open(path: &Path, error: &std::io::Error) -> EngineError {
    EngineError::Path { path: path.display().to_string(), reason: error.to_string() }
}

#[cfg(test)]
mod tests;
