//! The server's folder: who may use it, and where things lie in it.
//!
//! ```text
//! DATA/lock                 held while a server or an administrator's command uses the folder
//! DATA/identity.key         32 bytes, the seed of the server's Ed25519 identity; mode 0600
//! DATA/web.key, web.crt     the key and certificate that browsers are shown; key mode 0600
//! DATA/acme/                 the certificate of an authority, and how that knows the server; mode 0700
//! DATA/server.redb          machines and invites; mode 0600
//! DATA/admin.sock           administration while the server runs; mode 0600
//! DATA/repositories/NAME/   a repository; mode 0700 of repositories
//! DATA/repositories/.removed-NAME/   one that was removed, until it is deleted
//! DATA/repositories/.lab/    where the disk is measured
//! DATA/lab/NUMBER.json       what was measured
//! DATA/cache/NAME/          what can be rebuilt of it; mode 0700 of cache
//! ```

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use holdall_format::REPOSITORY_MARKER;
use holdall_protocol::RepositoryError;
use holdall_repository::{make_dirs, sync_dir};
use holdall_sys::lock::Held;
use holdall_sys::{FileKind, PathBeneath, Root, metadata};

use crate::ServerError;

const LOCK: &str = "lock";
const DATABASE: &str = "server.redb";
const CACHE: &str = "cache";
const REPOSITORIES: &str = "repositories";
/// What names of repositories begin with that are being deleted; no repository's does.
const SET_ASIDE: &str = ".removed-";
/// Where the disk of the repositories is measured; no repository is called so.
const LAB_SCRATCH: &str = ".lab";
/// Where reports of that are kept.
const LAB_REPORTS: &str = "lab";
/// Where a certificate of an authority lies.
#[cfg(feature = "web")]
const ACME: &str = "acme";
/// How long the lock of a folder is waited for: most administrator's commands are done by then.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is asked for meanwhile.
const ASK_EVERY: Duration = Duration::from_millis(10);
/// What is in every data folder that a server has used, or that was put back from a copy, and in no
/// other: a lock has many a folder.
const OURS: [&str; 3] = ["identity.key", DATABASE, REPOSITORIES];
/// What may be in one of which a first start was cut short, or at the top of an empty disk.
const BEFORE: [&str; 3] = [LOCK, CACHE, "lost+found"];

/// The folder, held by this process.
#[derive(Debug)]
pub(crate) struct DataFolder {
    path: PathBuf,
    /// What all of its own files are reached from: a disk that comes from elsewhere may have links on it.
    root: PathBeneath,
    /// The number of the disk that it is on.
    disk: u64,
    /// Locked for as long as it is open.
    _lock: Held,
}

impl DataFolder {
    /// Makes the folder if it is not there, mode 0700, and takes its lock. Where an administrator's
    /// command holds it for a moment, that is waited for.
    ///
    /// # Errors
    /// [`ServerError::DataFolderInUse`] if another process holds it and goes on holding it;
    /// [`ServerError::Refused`] if it is somebody else's folder, in which nothing is made then.
    pub(crate) fn take(path: &Path) -> Result<Self, ServerError> {
        let above = path.parent().filter(|above| !above.as_os_str().is_empty());
        above.map_or(Ok(()), make_dirs)?;
        make_private(path)
            .map_err(|source| ServerError::io("making the data folder", path, source))?;
        // Its name may be of a start that came no further.
        make_dirs(path)?;
        refuse_other_content(path)?;
        let root = Root::at(path);
        let lock_path = path.join(LOCK);
        let locked = lock_within(&root.join(LOCK), PATIENCE);
        let Some(lock) = locked.map_err(|source| ServerError::io("locking", &lock_path, source))?
        else {
            return Err(ServerError::DataFolderInUse { path: path.to_owned() });
        };
        let disk = disk_of(&lock_path)
            .map_err(|source| ServerError::io("looking at", &lock_path, source))?;
        let folder = Self { path: path.to_owned(), root, disk, _lock: lock };
        folder.keep_to_its_owner()?;
        // What tells that this is a server's folder lasts before anything else is in it.
        sync_dir(path)?;
        Ok(folder)
    }

    /// Makes the folders of repositories and of what can be rebuilt, and takes the rights of others
    /// to those that were made with any.
    fn keep_to_its_owner(&self) -> Result<(), ServerError> {
        for name in [REPOSITORIES, CACHE] {
            let folder = self.root.join(name);
            keep_folder_to_its_owner(&folder).map_err(|source| match source.kind() {
                io::ErrorKind::NotADirectory => ServerError::refused(format!(
                    "{} is no folder: move it away, and start the server again",
                    folder.display()
                )),
                _ => ServerError::io("keeping to its owner", folder.path(), source),
            })?;
        }
        Ok(())
    }

    /// Refuses a repository, or what can be rebuilt of it, where a link stands in its place: what is written and
    /// removed there could be anybody's.
    ///
    /// # Errors
    /// [`RepositoryError::Damaged`].
    pub(crate) fn refuse_links(&self, name: &str) -> Result<(), RepositoryError> {
        let folders = [REPOSITORIES, CACHE].map(|folder| self.root.join(folder).join(name));
        let is_link =
            |found: &PathBeneath| found.stat().is_ok_and(|found| found.kind == FileKind::Symlink);
        folders.iter().find(|folder| is_link(folder)).map_or(Ok(()), |link| {
            let reason = "it is a symbolic link; if it is on another disk, mount that here instead";
            Err(RepositoryError::Damaged {
                what: link.display().to_string(),
                reason: reason.into(),
            })
        })
    }

    /// Whether there is one that a server used, or an invite was made in.
    pub(crate) fn is_at(path: &Path) -> bool {
        path.join(DATABASE).exists()
    }

    /// Whose the folder at `path` is: the server that used it may run as another user than the one
    /// who made it. `None` if there is no such folder.
    pub(crate) fn owner_at(path: &Path) -> Option<fs::Metadata> {
        fs::metadata(path.join(DATABASE)).or_else(|_| fs::metadata(path)).ok()
    }

    /// Whether it is on another disk by now than when it was taken, as after one was pulled out and put back:
    /// then nothing that is open of it can be used any more. While there is none, it has not moved.
    pub(crate) fn has_moved(&self) -> bool {
        disk_of(&self.path.join(LOCK)).is_ok_and(|disk| disk != self.disk)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn database(&self) -> PathBeneath {
        self.root.join(DATABASE)
    }

    /// Where all repositories lie.
    pub(crate) fn repositories(&self) -> PathBuf {
        self.path.join(REPOSITORIES)
    }

    /// Where the repository of that (valid) name lies.
    pub(crate) fn repository(&self, name: &str) -> PathBuf {
        self.repositories().join(name)
    }

    /// An empty folder on the disk of the repositories, to measure that in. What was left in it is gone.
    pub(crate) fn lab_scratch(&self) -> Result<PathBuf, ServerError> {
        self.clear_lab_scratch()?;
        let folder = self.root.join(REPOSITORIES).join(LAB_SCRATCH);
        folder
            .create_dir(0o700)
            .map_err(|source| ServerError::io("making", folder.path(), source))?;
        Ok(folder.path().to_owned())
    }

    /// Removes what was measured in. Nobody measures there.
    pub(crate) fn clear_lab_scratch(&self) -> Result<(), ServerError> {
        self.delete(REPOSITORIES, LAB_SCRATCH)
    }

    /// Where reports of that are kept.
    pub(crate) fn lab_reports(&self) -> PathBeneath {
        self.root.join(LAB_REPORTS)
    }

    /// Where a certificate of an authority lies.
    #[cfg(feature = "web")]
    pub(crate) fn acme(&self) -> PathBeneath {
        self.root.join(ACME)
    }

    /// Where what can be rebuilt of it lies.
    pub(crate) fn cache(&self, name: &str) -> PathBuf {
        self.path.join(CACHE).join(name)
    }

    /// Gives a repository, and what can be rebuilt of it, another name. It is durable when this returns.
    pub(crate) fn rename_repository(&self, old: &str, new: &str) -> Result<(), ServerError> {
        self.rename(REPOSITORIES, old, new)?;
        // What is left of another one would be taken for what can be rebuilt of this one.
        self.delete(CACHE, new).and_then(|()| self.rename(CACHE, old, new))
    }

    /// Takes a repository away under a name that none has, and deletes what can be rebuilt of it.
    pub(crate) fn set_aside(&self, name: &str) -> Result<(), ServerError> {
        let aside = format!("{SET_ASIDE}{name}");
        self.delete(REPOSITORIES, &aside)?;
        self.rename(REPOSITORIES, name, &aside)?;
        self.delete(CACHE, name)
    }

    /// The names that repositories had which were taken away.
    pub(crate) fn all_set_aside(&self) -> Result<Vec<String>, ServerError> {
        let path = self.repositories();
        let entries =
            fs::read_dir(&path).map_err(|source| ServerError::io("listing", &path, source))?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        Ok(names.filter_map(|name| name.strip_prefix(SET_ASIDE).map(str::to_owned)).collect())
    }

    /// Where a repository lies that was taken away.
    pub(crate) fn set_aside_at(&self, name: &str) -> PathBuf {
        self.repositories().join(format!("{SET_ASIDE}{name}"))
    }

    /// Deletes a repository that was taken away.
    pub(crate) fn delete_set_aside(&self, name: &str) -> Result<(), ServerError> {
        self.delete(REPOSITORIES, &format!("{SET_ASIDE}{name}"))
    }

    /// Gives a repository that was taken away its name again.
    pub(crate) fn put_back_set_aside(&self, name: &str) -> Result<(), ServerError> {
        self.rename(REPOSITORIES, &format!("{SET_ASIDE}{name}"), name)
    }

    /// Renames a folder, if it is there.
    fn rename(&self, within: &str, old: &str, new: &str) -> Result<(), ServerError> {
        let folder = self.root.join(within);
        let (from, to) = (folder.join(old), folder.join(new));
        let renamed = match from.rename(&to) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            renamed => renamed.and_then(|()| folder.sync_dir()),
        };
        renamed.map_err(|source| ServerError::io("renaming", from.path(), source))
    }

    /// Deletes a folder, if it is there.
    fn delete(&self, within: &str, name: &str) -> Result<(), ServerError> {
        let folder = self.root.join(within).join(name);
        match folder.remove_tree() {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(ServerError::io("deleting", folder.path(), source))
            }
            _ => Ok(()),
        }
    }

    /// Reads a small file that is only its owner's to read, or makes it from what `fresh` returns.
    /// It is durable when this returns.
    pub(crate) fn read_or_make(
        &self,
        name: &str,
        limit_bytes: u64,
        fresh: impl FnOnce() -> Result<Vec<u8>, ServerError>,
    ) -> Result<Vec<u8>, ServerError> {
        let path = self.root.join(name);
        match read_limited(&path, limit_bytes) {
            Ok(bytes) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let bytes = fresh()?;
                self.make(&path, &bytes)
                    .map_err(|source| ServerError::io("writing", path.path(), source))?;
                Ok(bytes)
            }
            Err(source) => Err(ServerError::io("reading", path.path(), source)),
        }
    }

    /// Removes a small file, if it is there.
    pub(crate) fn remove(&self, name: &str) -> Result<(), ServerError> {
        let path = self.root.join(name);
        match path.remove_file() {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(ServerError::io("removing", path.path(), source))
            }
            _ => Ok(()),
        }
    }

    /// Writes beside and publishes without replacing.
    fn make(&self, path: &PathBeneath, bytes: &[u8]) -> io::Result<()> {
        let (beside, mut file) = make_beside(path)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        beside.hard_link(path)?;
        beside.remove_file()?;
        self.root.sync_dir()
    }
}

/// Makes an empty file that is only its owner's to read, to be given the name `path` once it is whole.
pub(crate) fn make_beside(path: &PathBeneath) -> io::Result<(PathBeneath, File)> {
    let beside =
        path.with_file_name(Path::new(path.file_name().unwrap_or_default()).with_extension("new"));
    match beside.remove_file() {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = beside.create_new(0o600)?;
    Ok((beside, file))
}

fn disk_of(path: &Path) -> io::Result<u64> {
    fs::metadata(path).map(|found| found.dev())
}

/// Makes a folder, mode 0700, if there is none.
fn make_private(path: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// Makes a folder if there is none, and takes the rights of others to it.
fn keep_folder_to_its_owner(folder: &PathBeneath) -> io::Result<()> {
    match folder.create_dir(0o700) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    let dir = folder.open_dir()?;
    if dir.stat_self()?.mode & 0o077 == 0 { Ok(()) } else { metadata::set_mode(&dir, 0o700) }
}

/// Locks a file, which is made if needed; `None` if somebody else holds it for longer than `patience`.
fn lock_within(path: &PathBeneath, patience: Duration) -> io::Result<Option<Held>> {
    let begun = Instant::now();
    loop {
        match Held::exclusive(path.open_or_create(0o600)?)? {
            Some(held) if held.is_locked() => return Ok(Some(held)),
            Some(_) => return Err(io::ErrorKind::Unsupported.into()),
            None if begun.elapsed() >= patience => return Ok(None),
            None => std::thread::sleep(ASK_EVERY),
        }
    }
}

/// A server does not move in among files of somebody else.
fn refuse_other_content(path: &Path) -> Result<(), ServerError> {
    if path.join(REPOSITORY_MARKER).exists() {
        return Err(ServerError::refused(format!(
            "{} is a repository, which is used without a server; name a folder of its own with --data",
            path.display()
        )));
    }
    if OURS.iter().any(|name| path.join(name).exists()) {
        return Ok(());
    }
    let entries = fs::read_dir(path).map_err(|source| ServerError::io("listing", path, source))?;
    let names = entries.flatten().map(|entry| entry.file_name());
    match names.filter(|name| !BEFORE.iter().any(|before| name == before)).min() {
        None => Ok(()),
        Some(other) => Err(ServerError::refused(format!(
            "{} is neither empty nor a server's data folder: it has {}; name a folder of its own \
             with --data",
            path.display(),
            other.display()
        ))),
    }
}

fn read_limited(path: &PathBeneath, limit_bytes: u64) -> io::Result<Vec<u8>> {
    use io::Read;
    let mut bytes = Vec::new();
    path.open()?.take(limit_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_others_could_read_is_closed_to_them() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("not/there/data");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        for _ in 0..2 {
            let folder = DataFolder::take(&path).unwrap();
            let within = [folder.repositories(), path.join(CACHE)];
            assert_eq!([mode(&path), mode(&within[0]), mode(&within[1])], [0o700; 3]);
            for path in within {
                fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
    }

    #[test]
    fn a_command_that_holds_the_folder_for_a_moment_is_waited_for() {
        let parent = tempfile::tempdir().unwrap();
        let held = DataFolder::take(parent.path()).unwrap();
        std::thread::scope(|scope| {
            let next = scope.spawn(|| DataFolder::take(parent.path()).map(drop));
            drop(held);
            next.join().unwrap().unwrap();
        });
    }

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
    fn what_is_no_server_s_is_refused_and_a_start_that_was_cut_short_is_gone_on_with() {
        let place = |names: &[&str]| {
            let folder = tempfile::tempdir().unwrap();
            names.iter().for_each(|name| fs::write(folder.path().join(name), "").unwrap());
            folder
        };
        for others in [&["lock", "holdall-repository"][..], &["lock", "thesis.odt"]] {
            let folder = place(others);
            let refused = DataFolder::take(folder.path()).unwrap_err();
            assert!(matches!(refused, ServerError::Refused { .. }), "{refused}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is made there");
        }
        let repository = place(&["identity.key", "holdall-repository"]);
        DataFolder::take(repository.path()).unwrap_err();
        let file_for_folder = place(&["identity.key", REPOSITORIES]);
        let refused = DataFolder::take(file_for_folder.path()).unwrap_err().to_string();
        assert!(refused.contains("repositories is no folder"), "{refused}");
        DataFolder::take(place(&["lock"]).path()).unwrap();
        DataFolder::take(place(&["identity.key", "thesis.odt"]).path()).unwrap();
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
