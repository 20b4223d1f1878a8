//! Which repository lies in which directory, as this computer knows it.
//!
//! With the repository stands the newest key epoch that was seen there, so that nobody who had the keys before a rotation
//! sets it back unseen; a kept key ring shows that by itself.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use holdall_crypto::CryptoError;
use holdall_format::{PublicKey, RepositoryId, WrappingSet};

use crate::error::{StateError, StateFile};
use crate::hex;
use crate::private_file;

/// More than the ids of a repository and of an epoch's key have.
const LIMIT_BYTES: u64 = 256;

/// What is known of a repository before it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Its id.
    pub repository: RepositoryId,
    /// The key of its newest epoch behind the first, if it had one.
    pub epoch: Option<PublicKey>,
}

impl Known {
    /// What a set tells that was opened.
    pub fn of(set: &WrappingSet) -> Self {
        let epoch = set.later_epochs.last().map(|epoch| epoch.key);
        Self { repository: set.repository, epoch }
    }

    /// Checks that a set of that repository has the epoch that is known. Without it, what is sealed
    /// from now on would be for whoever had the keys before they were rotated.
    ///
    /// # Errors
    /// [`CryptoError::SetBack`].
    pub fn check_epoch(&self, set: &WrappingSet) -> Result<(), CryptoError> {
        let has = |key| set.later_epochs.iter().any(|epoch| epoch.key == key);
        match self.epoch {
            Some(key) if set.repository == self.repository && !has(key) => {
                Err(CryptoError::SetBack)
            }
            _ => Ok(()),
        }
    }
}

/// The repositories that were opened in directories, a file each.
pub struct Directories {
    folder: PathBuf,
}

impl Directories {
    /// Those in a state folder.
    pub fn in_state(state: &Path) -> Self {
        Self { folder: state.join("directories") }
    }

    /// The repository that was opened last in the directory of that `name`.
    ///
    /// # Errors
    /// If the file cannot be read or understood.
    pub fn get(&self, name: &str) -> Result<Option<Known>, StateError> {
        let path = self.folder.join(name);
        let Some(bytes) = private_file::read(&path, LIMIT_BYTES)? else { return Ok(None) };
        let known = std::str::from_utf8(&bytes).ok().and_then(known_in);
        let no_id =
            || StateError::damaged(StateFile::Directory, &path, "it has no repository's id");
        known.map(Some).ok_or_else(no_id)
    }

    /// Moves away what cannot be used of that `name`; says where it is.
    ///
    /// # Errors
    /// If it cannot be moved.
    pub fn put_aside(&self, name: &str) -> Result<PathBuf, StateError> {
        private_file::put_aside(&self.folder.join(name))
    }

    /// Keeps which repository was opened in the directory of that `name`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&self, name: &str, known: &Known) -> Result<(), StateError> {
        let epoch = known.epoch.map(|key| format!(" {key}")).unwrap_or_default();
        let text = format!("{}{epoch}", known.repository);
        private_file::replace(&self.folder.join(name), text.as_bytes())
    }
}

/// Reads `REPOSITORY` or `REPOSITORY EPOCHKEY`.
fn known_in(text: &str) -> Option<Known> {
    let mut words = text.split_whitespace();
    let repository = words.next()?.parse().ok()?;
    let epoch = match words.next() {
        Some(key) => Some(PublicKey::from_bytes(*hex::decode(key)?)),
        None => None,
    };
    words.next().is_none().then_some(Known { repository, epoch })
}

/// A name that no other directory has, made of one that may be too long for a file's.
pub fn directory_name(folder: &Path) -> String {
    blake3::hash(folder.as_os_str().as_bytes()).to_hex().chars().take(32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_opened_in_a_directory_reads_back() {
        let state = tempfile::tempdir().unwrap();
        let directories = Directories::in_state(state.path());
        assert_eq!(directories.get("one").unwrap(), None);
        let repository = RepositoryId::from_bytes([3; 16]);
        for epoch in [None, Some(PublicKey::from_bytes([4; 32]))] {
            let known = Known { repository, epoch };
            directories.keep("one", &known).unwrap();
            assert_eq!(directories.get("one").unwrap(), Some(known));
        }
        assert_eq!(directories.get("two").unwrap(), None);
        let written = std::fs::read_to_string(state.path().join("directories/one")).unwrap();
        for damaged in ["x", "", &format!("{repository} x"), &format!("{written} x")] {
            std::fs::write(state.path().join("directories/one"), damaged).unwrap();
            assert!(directories.get("one").is_err(), "{damaged}");
        }
    }
}
