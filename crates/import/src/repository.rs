//! A repository of restic: opened with its password, and its snapshots.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use holdall_engine::{ForeignSnapshot, plain_path};
use holdall_format::limits::RECORD_MAX_PATHS;
use rustic_core::repofile::{BlobType, SnapshotFile};
use rustic_core::{
    BlobId, Credentials, FileType, Id, ReadBackend, Repository, RepositoryBackends,
    RepositoryOptions, RusticError, TreeId,
};

use crate::directory::Directory;
use crate::indexed::{Indexed, is_denied, is_forbidden, reason};
use crate::tree::ResticTree;
use crate::{ImportError, ResticSnapshot, UnreadKind, UnreadSnapshot, places};

/// A repository of restic, open to be read.
pub struct ResticRepository {
    path: PathBuf,
    repository: Arc<Indexed>,
}

impl ResticRepository {
    /// Looks whether a repository is there, before a password is asked for.
    ///
    /// # Errors
    /// [`ImportError::NoRepository`], [`ImportError::Forbidden`].
    pub fn check(path: &Path) -> Result<(), ImportError> {
        let none = |reason: String| ImportError::NoRepository { path: path.to_owned(), reason };
        let has_keys = path.join("keys").read_dir().map(|mut keys| keys.next().is_some());
        match (path.join("config").metadata(), has_keys) {
            (Ok(_), Ok(true)) => Ok(()),
            (Err(error), _) | (_, Err(error)) if is_denied(&error) => {
                Err(ImportError::Forbidden { path: path.to_owned(), reason: error.to_string() })
            }
            (Ok(_), _) => {
                Err(none("no repository of restic is there: nothing is in its `keys`".into()))
            }
            (Err(error), _) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(none("no repository of restic is there: it has no file `config`".into()))
            }
            (Err(error), _) => Err(none(error.to_string())),
        }
    }

    /// Opens the repository in that directory and reads its index.
    ///
    /// # Errors
    /// [`ImportError`].
    pub fn open(path: &Path, password: &str) -> Result<Self, ImportError> {
        Self::check(path)?;
        let failed = |error: Box<RusticError>| match error.is_incorrect_password() {
            true => ImportError::WrongPassword { path: path.to_owned() },
            false => unread(path, &error),
        };
        let backends = RepositoryBackends::new(Arc::new(Directory::new(path)), None);
        // Its cache would be one of a program that is not there.
        let options = RepositoryOptions::default().no_cache(true);
        let opened = Repository::new(&options, &backends).map_err(failed)?;
        let opened = opened.open(&Credentials::password(password)).map_err(failed)?;
        let repository = Arc::new(opened.to_indexed().map_err(failed)?);
        Ok(Self { path: path.to_owned(), repository })
    }

    /// All its snapshots, oldest first, and those that cannot be read.
    ///
    /// # Errors
    /// [`ImportError::Damaged`], [`ImportError::Forbidden`] if they cannot be listed.
    pub fn snapshots(&self) -> Result<(Vec<ResticSnapshot>, Vec<UnreadSnapshot>), ImportError> {
        let (files, unread) = match self.repository.get_all_snapshots() {
            Ok(files) => (files, Vec::new()),
            // One that cannot be read keeps all back there, and none of the others here.
            Err(_) => self.one_by_one()?,
        };
        let mut snapshots: Vec<_> = files.iter().map(snapshot).collect();
        snapshots.sort_by_key(|snapshot| (snapshot.foreign.taken_ns, snapshot.foreign.id));
        Ok((snapshots, unread))
    }

    fn one_by_one(&self) -> Result<(Vec<SnapshotFile>, Vec<UnreadSnapshot>), ImportError> {
        let listed = Directory::new(&self.path).list_with_size(FileType::Snapshot);
        let (mut files, mut without) = (Vec::new(), Vec::new());
        for (id, _) in listed.map_err(|error| unread(&self.path, &error))? {
            let id = id.to_hex().to_string();
            match self.repository.get_snapshots(&[&id]) {
                Ok(found) => files.extend(found),
                Err(error) => {
                    let (reason, kind) = (reason(&error), self.kind(&id, &error));
                    without.push(UnreadSnapshot { id, reason, kind });
                }
            }
        }
        Ok((files, without))
    }

    /// Why the snapshot of an id cannot be read.
    fn kind(&self, id: &str, error: &RusticError) -> UnreadKind {
        let is_json = |file: &Bytes| serde_json::from_slice::<serde_json::Value>(file).is_ok();
        match self.repository.cat_file(FileType::Snapshot, id) {
            _ if is_forbidden(error) => UnreadKind::Forbidden,
            Ok(file) if is_json(&file) => UnreadKind::NotUnderstood,
            _ => UnreadKind::Damaged,
        }
    }

    /// A snapshot with its paths as its tree has them, if its topmost folder can be read.
    ///
    /// # Errors
    /// [`ImportError::Damaged`], [`ImportError::Forbidden`].
    pub fn placed(&self, snapshot: &ResticSnapshot) -> Result<ResticSnapshot, ImportError> {
        let root = Id::new(snapshot.tree);
        let read = self.repository.get_blob_cached(&BlobId::from(root), BlobType::Tree);
        read.map_err(|error| unread(&self.path, &error))?;
        let mut placed = snapshot.clone();
        let paths = places::placed(&self.repository, TreeId::from(root), &placed.foreign.paths);
        placed.foreign.paths = recordable(paths);
        Ok(placed)
    }

    /// What walks the tree of a snapshot, and says what is as in `base`.
    pub fn tree(&self, snapshot: &ResticSnapshot, base: Option<&ResticSnapshot>) -> ResticTree {
        let base = base.map(|base| base.tree);
        ResticTree::new(Arc::clone(&self.repository), snapshot.tree, base)
    }
}

fn snapshot(file: &SnapshotFile) -> ResticSnapshot {
    let time = file.time.timestamp();
    let taken_ns = clamped(time.as_nanosecond());
    let paths = recordable(file.paths.iter().map(|path| absolute(path)).collect());
    let foreign = ForeignSnapshot {
        id: bytes_of(&file.id),
        taken_ns,
        host: file.hostname.clone(),
        user: file.username.clone(),
        paths,
        tags: file.tags.iter().filter(|tag| !tag.is_empty()).cloned().collect(),
    };
    let original = file.original.map(|id| bytes_of(&id));
    let date = (i128::from(taken_ns) != time.as_nanosecond()).then(|| time.to_string());
    ResticSnapshot { foreign, original, date, tree: bytes_of(&file.tree) }
}

/// A time, or the nearest one that a record can say: one of the years 1677 to 2262.
fn clamped(time_ns: i128) -> i64 {
    let nearest = if time_ns < 0 { i64::MIN } else { i64::MAX };
    i64::try_from(time_ns).unwrap_or(nearest)
}

/// Paths as a record takes them: of more than it takes, the folder that has all of them.
fn recordable(mut paths: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    paths.sort();
    paths.dedup();
    match &paths[..] {
        [first, .., last] if paths.len() > RECORD_MAX_PATHS => {
            // What all of them begin with, its lowest and its highest do.
            let shared = first.iter().zip(last).take_while(|(left, right)| left == right).count();
            let folder = first[..shared].iter().rposition(|byte| *byte == b'/').unwrap_or(0);
            vec![plain_path(&first[..folder])]
        }
        [] => vec![b"/".to_vec()],
        _ => paths,
    }
}

/// A path as restic recorded it, in a plain form: `C:\Users` is `/C/Users`, as its tree has it.
fn absolute(path: &str) -> Vec<u8> {
    let mut path = path.to_owned();
    if let [drive, b':', ..] = path.as_bytes()
        && drive.is_ascii_alphabetic()
    {
        path = path.replace('\\', "/");
        path.remove(1);
    }
    plain_path(path.as_bytes())
}

/// The bytes of an id, which only says its digits.
fn bytes_of(id: &Id) -> [u8; 32] {
    let digits = id.to_hex();
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
        let digit = |digit: &u8| (*digit as char).to_digit(16).unwrap_or_default() as u8;
        *byte = pair.iter().fold(0, |byte, next| byte << 4 | digit(next));
    }
    bytes
}

fn unread(path: &Path, error: &RusticError) -> ImportError {
    let (path, reason) = (path.to_owned(), reason(error));
    match is_forbidden(error) {
        true => ImportError::Forbidden { path, reason },
        false => ImportError::Damaged { path, reason },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_more_paths_than_a_record_takes_the_folder_is_recorded() {
        let paths = |count: usize| (0..count).map(|at| format!("/srv/photos/{at:04}").into_bytes());
        assert_eq!(recordable(paths(RECORD_MAX_PATHS).collect()).len(), RECORD_MAX_PATHS);
        assert_eq!(recordable(paths(RECORD_MAX_PATHS + 1).collect()), [b"/srv/photos"]);
        let others = paths(RECORD_MAX_PATHS).chain([b"/etc".to_vec()]);
        assert_eq!(recordable(others.collect()), [b"/"]);
        assert_eq!(recordable(Vec::new()), [b"/"]);
    }

    #[test]
    fn a_path_of_windows_is_where_the_tree_has_it() {
        for (path, plain) in [
            ("/home/ada/", &b"/home/ada"[..]),
            ("C:\\Users\\ada", b"/C/Users/ada"),
            ("/c:\\x", b"/c:\\x"),
            ("/", b"/"),
        ] {
            assert_eq!(absolute(path), plain, "{path}");
        }
    }
}
