//! Why the index did not answer. All of it can be made anew from the packs' footers.

use holdall_protocol::RepositoryError;
use holdall_sys::PathBeneath;

/// An index that is wrong, or a file of it that could not be written.
#[derive(Debug)]
pub(crate) enum IndexError {
    /// What is stored is not what was written. Rebuilding helps.
    Damaged {
        /// The file.
        what: String,
        /// What is wrong.
        reason: String,
    },
    /// Something else went wrong.
    Failed(RepositoryError),
}

impl IndexError {
    pub(crate) fn damaged(path: &PathBeneath, reason: impl ToString) -> Self {
        Self::Damaged { what: path.display().to_string(), reason: reason.to_string() }
    }
}

impl From<RepositoryError> for IndexError {
    fn from(error: RepositoryError) -> Self {
        Self::Failed(error)
    }
}

impl From<IndexError> for RepositoryError {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::Damaged { what, reason } => Self::Damaged { what, reason },
            IndexError::Failed(error) => error,
        }
    }
}
