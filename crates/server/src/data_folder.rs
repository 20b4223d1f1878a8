//! The server's folder: who may use it, and where things lie in it.
//!
//! ```text
//! DATA/lock                 held while a server or an administrator's command uses the folder
//! DATA/identity.key         32 bytes, the seed of the server's Ed25519 identity; mode 0600
//! DATA/web.key, web.crt     the key and certificate that browsers are shown; key mode 0600
//! DATA/server.redb          machines and invites; mode 0600
//! DATA/admin.sock           administration while the server runs; mode 0600
//! DATA/repositories/NAME/   a repository
//! DATA/cache/NAME/          what can be rebuilt of it
//! ```

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::ServerError;

const DATABASE: &str = "server.redb";
/// What is in every data folder that a server has used, or that was put back from a copy.
const OURS: [&str; 4] = ["lock", "identity.key", DATABASE, "repositories"];

/// The folder, held by this process.
#[derive(Debug)]
pub(crate) struct DataFolder {
    path: PathBuf,
    /// Locked for as long as it is open.
    _lock: File,
}

impl DataFolder {
    /// Makes the folder if it is not there, mode 0700, and takes its lock.
    ///
    /// # Errors
    /// [`ServerError::DataFolderInUse`] if another process holds it; [`ServerError::Refused`] if it
    /// is somebody else's folder, in which nothing is made then.
    pub(crate) fn take(path: &Path) -> Result<Self, ServerError> {
        let mut folder = fs::DirBuilder::new();
        folder
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|source| ServerError::io("making the data folder", path, source))?;
        refuse_other_content(path)?;
        let lock_path = path.join("lock");
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&lock_path)
            .map_err(|source| ServerError::io("opening", &lock_path, source))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => {
                Err(ServerError::DataFolderInUse { path: path.to_owned() })
            }
            Err(TryLockError::Error(source)) => Err(ServerError::io("locking", &lock_path, source)),
        }
    }

    /// Whether there is one that a server used, or an invite was made in.
    pub(crate) fn is_at(path: &Path) -> bool {
        path.join(DATABASE).exists()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path.join(DATABASE)
    }

    /// Where all repositories lie.
    pub(crate) fn repositories(&self) -> PathBuf {
        self.path.join("repositories")
    }

    /// Where the repository of that (valid) name lies.
    pub(crate) fn repository(&self, name: &str) -> PathBuf {
        self.repositories().join(name)
    }

    /// Where what can be rebuilt of it lies.
    pub(crate) fn cache(&self, name: &str) -> PathBuf {
        self.path.join("cache").join(name)
    }

    /// Reads a small file that is only its owner's to read, or makes it from what `fresh` returns.
    /// It is durable when this returns.
    pub(crate) fn read_or_make(
        &self,
        name: &str,
        limit_bytes: u64,
        fresh: impl FnOnce() -> Result<Vec<u8>, ServerError>,
    ) -> Result<Vec<u8>, ServerError> {
        let path = self.path.join(name);
        match read_limited(&path, limit_bytes) {
            Ok(bytes) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let bytes = fresh()?;
                self.make(&path, &bytes)
                    .map_err(|source| ServerError::io("writing", &path, source))?;
                Ok(bytes)
            }
            Err(source) => Err(ServerError::io("reading", &path, source)),
        }
    }

    /// Writes beside and publishes without replacing.
    fn make(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let beside = path.with_extension("new");
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::hard_link(&beside, path)?;
        fs::remove_file(&beside)?;
        File::open(&self.path)?.sync_all()
    }
}

/// A server does not move in among files of somebody else.
fn refuse_other_content(path: &Path) -> Result<(), ServerError> {
    if OURS.iter().any(|name| path.join(name).exists()) {
        return Ok(());
    }
    let entries = fs::read_dir(path).map_err(|source| ServerError::io("listing", path, source))?;
    let mut names = entries.flatten().map(|entry| entry.file_name());
    match names.find(|name| name != "lost+found") {
        None => Ok(()),
        Some(other) => Err(ServerError::refused(format!(
            "{} is neither empty nor a server's data folder: it has {}; name a folder of its own \
             with --data",
            path.display(),
            other.display()
        ))),
    }
}

fn read_limited(path: &Path, limit_bytes: u64) -> io::Result<Vec<u8>> {
    use io::Read;
    let mut bytes = Vec::new();
    File::open(path)?.take(limit_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_folder_is_one_holder_s_at_a_time_and_its_owner_s_alone() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("data");
        let held = DataFolder::take(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(matches!(
            DataFolder::take(&path),
            Err(ServerError::DataFolderInUse { path: named }) if named == path
        ));
        drop(held);
        DataFolder::take(&path).unwrap();
    }

    #[test]
    fn a_secret_is_made_once_and_only_its_owner_may_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::take(folder.path()).unwrap();
        assert_eq!(data.read_or_make("key", 9, || Ok(vec![7; 9])).unwrap(), [7; 9]);
        assert_eq!(data.read_or_make("key", 9, || Ok(vec![8; 9])).unwrap(), [7; 9]);
        let mode = fs::metadata(folder.path().join("key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
