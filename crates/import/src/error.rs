//! Why nothing can be imported.

use std::path::PathBuf;

/// Why a repository cannot be opened or its snapshots not be listed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// This holdall reads no repositories of restic.
    #[error("this holdall was built without `import`")]
    NotBuilt,
    /// No repository is there.
    #[error("{}: {reason}", path.display())]
    NoRepository {
        /// Where it was looked for.
        path: PathBuf,
        /// What is there.
        reason: String,
    },
    /// None of its keys opens with the password.
    #[error("{}: wrong password", path.display())]
    WrongPassword {
        /// The repository.
        path: PathBuf,
    },
    /// It, or something of it that is needed, may only be read by another user.
    #[error("{}: {reason}", path.display())]
    Forbidden {
        /// The repository.
        path: PathBuf,
        /// What may not be read.
        reason: String,
    },
    /// Something of it that all else needs cannot be read.
    #[error("{}: {reason}", path.display())]
    Damaged {
        /// The repository.
        path: PathBuf,
        /// What cannot be read, and why.
        reason: String,
    },
}
