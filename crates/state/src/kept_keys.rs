//! The keys that this machine keeps, so that no password is asked for.

use std::path::{Path, PathBuf};

use holdall_crypto::{CryptoError, KeyRing, SigningKey};
use holdall_format::RepositoryId;
use zeroize::Zeroizing;

use crate::error::{StateError, StateFile};
use crate::hex;
use crate::keyring;
use crate::private_file;

const LIMIT_BYTES: u64 = 1 << 20;
/// What a file has in the place of a key ring that is in the system's keyring. No key ring begins so.
const IN_KEYRING: &[u8] = b"in the keyring\n";

/// Where a key ring is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPlace {
    /// In a file of mode 0600.
    File,
    /// In the system's keyring, which opens when its user logs in.
    Keyring,
}

/// The key rings of paired repositories, in a file of mode 0600 each, or in the system's keyring.
pub struct KeptKeys {
    folder: PathBuf,
}

impl KeptKeys {
    /// Those in a state folder.
    pub fn in_state(state: &Path) -> Self {
        Self { folder: state.join("keys") }
    }

    /// The key ring of a repository, if it is kept here.
    ///
    /// # Errors
    /// If the file cannot be read or understood; [`StateError::Keyring`] if the keyring does not give it.
    pub fn get(&self, repository: RepositoryId) -> Result<Option<KeyRing>, StateError> {
        let path = self.path(repository);
        let Some(bytes) = private_file::read(&path, LIMIT_BYTES)? else { return Ok(None) };
        if bytes == IN_KEYRING {
            return keyring::get(repository).map(Some);
        }
        let ring = KeyRing::decode(&Zeroizing::new(bytes));
        Ok(Some(ring.map_err(|error| damaged(&path, error))?))
    }

    /// Where the key ring of a repository is kept, if it is.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn place(&self, repository: RepositoryId) -> Result<Option<KeyPlace>, StateError> {
        let bytes = private_file::read(&self.path(repository), LIMIT_BYTES)?.map(Zeroizing::new);
        let is_there =
            |bytes: &[u8]| if bytes == IN_KEYRING { KeyPlace::Keyring } else { KeyPlace::File };
        Ok(bytes.map(|bytes| is_there(&bytes)))
    }

    /// The key with which a recovery kit signs in to read a repository, if it is kept here.
    ///
    /// # Errors
    /// If the file cannot be read or understood.
    pub fn reader(&self, repository: &str) -> Result<Option<SigningKey>, StateError> {
        let path = self.folder.join(format!("{repository}.reader"));
        let Some(bytes) = private_file::read(&path, LIMIT_BYTES)? else { return Ok(None) };
        let bytes = Zeroizing::new(bytes);
        let text = std::str::from_utf8(&bytes).unwrap_or_default();
        let seed = hex::decode(text.trim_end())
            .ok_or_else(|| damaged(&path, "it is not 64 hexadecimal digits"))?;
        Ok(Some(SigningKey::from_seed(&seed)))
    }

    /// Keeps a repository's key ring where it was; one that is kept and can be read is replaced only by one that
    /// continues it, or a keeper that sets the keys back could have this computer forget an epoch.
    ///
    /// # Errors
    /// [`CryptoError::SetBack`] if the ring does not continue the kept one; if it cannot be written.
    pub fn keep(&self, repository: RepositoryId, ring: &KeyRing) -> Result<(), StateError> {
        let place = self.place(repository)?.unwrap_or(KeyPlace::File);
        self.keep_in(place, repository, ring)
    }

    /// Keeps a repository's key ring in that place, and in no other.
    ///
    /// # Errors
    /// As for [`KeptKeys::keep`]; then it is where it was.
    pub fn keep_in(
        &self,
        place: KeyPlace,
        repository: RepositoryId,
        ring: &KeyRing,
    ) -> Result<(), StateError> {
        let kept = self.get(repository).ok().flatten();
        if kept.is_some_and(|kept| !ring.continues(&kept)) {
            return Err(CryptoError::SetBack.into());
        }
        let (path, before) = (self.path(repository), self.place(repository)?);
        match place {
            KeyPlace::File => private_file::replace(&path, &ring.encode())?,
            KeyPlace::Keyring => {
                keyring::put(repository, ring)?;
                private_file::replace(&path, IN_KEYRING)?;
            }
        }
        if before == Some(KeyPlace::Keyring) && place == KeyPlace::File {
            keyring::remove(repository)?;
        }
        Ok(())
    }

    /// Keeps a repository's key ring no more.
    ///
    /// # Errors
    /// If its file cannot be removed, or the keyring not be asked.
    pub fn forget(&self, repository: RepositoryId) -> Result<(), StateError> {
        if self.place(repository)? == Some(KeyPlace::Keyring) {
            keyring::remove(repository)?;
        }
        private_file::remove(&self.path(repository))
    }

    fn path(&self, repository: RepositoryId) -> PathBuf {
        self.folder.join(repository.to_string())
    }

    /// Keeps the key with which a recovery kit signs in.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep_reader(
        &self,
        repository: RepositoryId,
        key: &SigningKey,
    ) -> Result<(), StateError> {
        let path = self.folder.join(format!("{repository}.reader"));
        private_file::replace(&path, hex::encode(key.seed()).as_bytes())
    }
}

fn damaged(path: &Path, reason: impl ToString) -> StateError {
    StateError::damaged(StateFile::Key, path, reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdall_crypto::SystemEntropy;

    #[test]
    fn a_kept_key_reads_back() {
        let state = tempfile::tempdir().unwrap();
        let keys = KeptKeys::in_state(state.path());
        let repository = RepositoryId::from_bytes([3; 16]);
        assert!(keys.get(repository).unwrap().is_none());
        let ring = KeyRing::from_master([9; 32]);
        keys.keep(repository, &ring).unwrap();
        assert_eq!(keys.get(repository).unwrap().unwrap().encode(), ring.encode());
        let rotated = ring.with_new_epoch(&mut SystemEntropy).unwrap();
        keys.keep(repository, &rotated).unwrap();
        assert!(keys.keep(repository, &ring).is_err());
        assert_eq!(keys.get(repository).unwrap().unwrap().encode(), rotated.encode());
        std::fs::write(state.path().join("keys").join(repository.to_string()), "x").unwrap();
        assert!(keys.get(repository).is_err());
        keys.keep(repository, &ring).unwrap();
    }
}
