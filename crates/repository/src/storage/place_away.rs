//! Why a pack cannot be read that is there all the same.

use std::io;
use std::path::PathBuf;

/// That the disk of a place is not there: nothing is known of what lies on it, as where a process may open no more files.
#[derive(Debug, thiserror::Error)]
#[error("the storage place at {} is not there: mount its disk", .0.display())]
pub(crate) struct PlaceAway(pub(crate) PathBuf);

impl PlaceAway {
    /// Whether that is why something failed.
    pub(crate) fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Self>())
    }
}
