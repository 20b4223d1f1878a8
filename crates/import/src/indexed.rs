//! What the library gives: a repository that blobs can be read from, and errors.

use std::error::Error;

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
    let mut cause = error.source();
    let mut told = vec![words(error)];
    while let Some(next) = cause {
        told.push(inner(next).unwrap_or_else(|| next.to_string()));
        cause = next.source();
    }
    told.dedup();
    told.join(": ")
}
