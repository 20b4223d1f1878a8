//! Why the state folder could not be used, or what it shows to be wrong.

use std::io;
use std::path::{Path, PathBuf};

use holdall_crypto::CryptoError;
use holdall_engine::EngineError;
use holdall_format::{RecordHash, RepositoryId};
use holdall_lab::report::ReportError;
use holdall_protocol::RepositoryError;

/// Which file of the state folder is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateFile {
    /// Which machine this is.
    Identity,
    /// The servers that it was paired with.
    Pairings,
    /// A key ring, or the key of a recovery kit.
    Key,
    /// The last snapshot of a repository, or the last change of tags and pins.
    Receipt,
    /// The repository of a directory.
    Directory,
}

/// A record that this machine remembers and that the repository does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} {record} is gone: {reason}", if *.is_amendment { "the record of tags and pins" } else { "snapshot" })]
pub struct Gone {
    /// The record.
    pub record: RecordHash,
    /// Whether it changed tags and pins, and is no snapshot.
    pub is_amendment: bool,
    /// How that is known.
    pub reason: &'static str,
}

/// Why a file of the state folder could not be used. What was kept before stays, and calling again is safe. No variant
/// holds a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The system refused.
    #[error("{what}")]
    Io {
        /// What could not be done, with its path.
        what: String,
        /// Why.
        source: io::Error,
    },
    /// A file is longer than one of its kind can be; no more of it was read.
    #[error("{} is too long", .0.display())]
    TooLong(PathBuf),
    /// A file is not what was written.
    #[error("{} {}: {reason}", path.display(), if *file == StateFile::Identity { "is not this machine's identity" } else { "is damaged" })]
    Damaged {
        /// Which one.
        file: StateFile,
        /// Where it is.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The system's keyring, which is to have a repository's key, does not give or take it.
    #[error("the key of the repository {repository} is to be in the system's keyring: {reason}")]
    Keyring {
        /// Whose key.
        repository: RepositoryId,
        /// Why, as far as it is known.
        reason: String,
    },
    /// A file that was named is not there.
    #[error("{} is not there", .0.display())]
    NotThere(PathBuf),
    /// A file is no report of the lab.
    #[error("{}: {error}", path.display())]
    Report {
        /// Where it is.
        path: PathBuf,
        /// What is wrong with it.
        error: ReportError,
    },
    /// A pairing pins what is no server's identity.
    #[error("the pinned identity is damaged")]
    PinnedIdentity,
    /// The repository lost a record, or hides it.
    #[error(transparent)]
    Gone(Gone),
    /// Nothing is serialized that cannot be.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The repository could not be asked, keys were set back, or a folder could not be made durable.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl StateError {
    /// What the system refused to do.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// A file that is not what was written.
    pub(crate) fn damaged(file: StateFile, path: &Path, reason: impl ToString) -> Self {
        Self::Damaged { file, path: path.to_owned(), reason: reason.to_string() }
    }
}

impl From<RepositoryError> for StateError {
    fn from(error: RepositoryError) -> Self {
        Self::Engine(error.into())
    }
}

impl From<CryptoError> for StateError {
    fn from(error: CryptoError) -> Self {
        Self::Engine(error.into())
    }
}
