//! Why nothing could be measured.

use std::io;
use std::path::{Path, PathBuf};

/// Why a measurement could not be made. What was written for it is gone again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The measurement would take more than its share of the room that is left. Nothing was written.
    #[error(
        "no room in {}: {} are wanted, and of what is free ({}) no more than {} may be taken",
        path.display(),
        megabytes(*wanted_bytes),
        free_bytes.map_or_else(|| "unknown".to_owned(), megabytes),
        megabytes(*allowed_bytes)
    )]
    NoRoom {
        /// Where it was to be.
        path: PathBuf,
        /// How much it would take.
        wanted_bytes: u64,
        /// How much it may take.
        allowed_bytes: u64,
        /// How much there is, if the file system tells.
        free_bytes: Option<u64>,
    },
    /// No folder to measure in can be made in a directory that is there. Nothing was written.
    #[error("no folder to measure in can be made in {}: {source}", path.display())]
    NotWritable {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The settings make no sense together.
    #[error("{0}")]
    Settings(String),
    /// Somebody wished it to end.
    #[error("interrupted")]
    Interrupted,
    /// The system refused something.
    #[error("{what}: {source}")]
    Io {
        /// What was tried, and on what.
        what: String,
        /// What the system said.
        source: io::Error,
    },
}

impl LabError {
    /// An error of the system while `doing` something with `path`.
    pub(crate) fn io(doing: &str, path: &Path, source: io::Error) -> Self {
        Self::Io { what: format!("{doing} {}", path.display()), source }
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
