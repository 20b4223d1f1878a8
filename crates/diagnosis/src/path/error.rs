//! Why a path could not be measured.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use holdall_engine::{EngineError, PatternError};
use holdall_lab::LabError;
use holdall_meter::size;
use holdall_protocol::RepositoryError;

/// Why a path could not be measured. What was written for it is gone with the folder that is measured in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// A measurement of the lab; of a copy to a server, what that says is within its [`io::Error`].
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A backup or a restore.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The server, or the temporary repository.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// What is to be left out cannot be said.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// The system, or whoever is told; what a server says is within it.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// There is nothing to measure with.
    #[error("{} has no file of up to {}", source_path.display(), size(*most_bytes))]
    NoFile {
        /// What was to be backed up.
        source_path: PathBuf,
        /// How much may be measured.
        most_bytes: u64,
    },
    /// The client cannot make a repository.
    #[error(transparent)]
    Client(Box<dyn Error + Send + Sync>),
}
