//! What each repository said of itself when it was opened last, kept on this machine: should every copy in the
//! repository be damaged, it is given this one back.

use std::path::{Path, PathBuf};

use holdall_format::{RepositoryId, SPARE_MAX_BYTES, Spare};

use crate::error::StateError;
use crate::private_file;

/// Configurations and sets of wrappings, a file for each repository.
pub struct KeptParts {
    folder: PathBuf,
}

impl KeptParts {
    /// Those in a state folder.
    pub fn in_state(state: &Path) -> Self {
        Self { folder: state.join("clear-parts") }
    }

    /// What that repository said of itself. What cannot be read is as good as never kept.
    pub fn get(&self, repository: RepositoryId) -> Option<Spare> {
        let bytes = private_file::read(&self.path(repository), SPARE_MAX_BYTES as u64).ok()??;
        Spare::decode(&bytes).ok().filter(|spare| spare.config.repository == repository)
    }

    /// Keeps what a repository says of itself, unless it was newer an earlier time.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&self, spare: &Spare) -> Result<(), StateError> {
        let repository = spare.config.repository;
        match self.get(repository) {
            Some(kept) if kept.wrappings.generation > spare.wrappings.generation => Ok(()),
            Some(kept) if kept == *spare => Ok(()),
            _ => private_file::replace(&self.path(repository), &spare.encode()),
        }
    }

    /// Keeps what a repository said of itself no more.
    ///
    /// # Errors
    /// If its file cannot be removed.
    pub fn forget(&self, repository: RepositoryId) -> Result<(), StateError> {
        private_file::remove(&self.path(repository))
    }

    fn path(&self, repository: RepositoryId) -> PathBuf {
        self.folder.join(repository.to_string())
    }
}
