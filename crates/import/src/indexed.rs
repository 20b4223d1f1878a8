//! What the library gives: a repository that blobs can be read from, and errors.

use std::error::Error;
use std::io;

use rustic_core::{IndexedFullStatus, Repository, RusticError};

/// A repository with its whole index in memory: about 60 bytes a blob.
pub(crate) type Indexed = Repository<IndexedFullStatus>;

/// An error of the library in one line: its own sentence, and what lies at the bottom of it.
pub(crate) fn reason(error: &RusticError) -> String {
    let words = |error: &RusticError| {
        let told = error.display_log();
        let told = told.strip_prefix("Error: ").unwrap_or(&told);
        told.split(" (kind: ").next().unwrap_or(told).trim().to_owned()
    };
    let inner = |cause: &(dyn Error + 'static)| {
        let boxed = cause.downcast_ref::<Box<RusticError>>().map(|boxed| words(boxed));
        boxed.or_else(|| cause.downcast_ref::<RusticError>().map(words))
    };
    let mut told = vec![words(error)];
    told.extend(causes(error).map(|cause| inner(cause).unwrap_or_else(|| cause.to_string())));
    told.dedup();
    told.join(": ")
}

/// Whether an error says that only another user may read something.
pub(crate) fn is_forbidden(error: &RusticError) -> bool {
    causes(error).filter_map(|cause| cause.downcast_ref::<io::Error>()).any(is_denied)
}

/// Whether the system says so.
pub(crate) fn is_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

fn causes(error: &RusticError) -> impl Iterator<Item = &(dyn Error + 'static)> {
    let mut next = error.source();
    std::iter::from_fn(move || {
        let cause = next?;
        next = cause.source();
        Some(cause)
    })
}
