//! A storage that is a directory. Each call is one of [`publish`](crate::storage::publish), so that the order of writes and
//! fsyncs is written down once.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;

use holdall_protocol::RepositoryError;
use holdall_sys::{FileKind, PathBeneath};

use super::{GrowingFile, IsHeld, Key, Landed, Landing, OpenTo, ReadAt, Stat, Storage};
use crate::storage::publish::{self, FILE_MODE, Published, failed};
use crate::storage::set_aside;

/// A directory, and the folder in it for what is not published yet.
#[derive(Debug)]
pub(crate) struct DirStorage {
    root: PathBeneath,
    tmp: PathBeneath,
}

impl DirStorage {
    /// The storage in a folder, with a folder `tmp` on the same file system.
    pub(crate) fn new(root: &PathBeneath, tmp: PathBeneath) -> Self {
        Self { root: root.clone(), tmp }
    }

    fn at(&self, key: &Key) -> PathBeneath {
        if key.below().as_os_str().is_empty() {
            self.root.clone()
        } else {
            self.root.join(key.below())
        }
    }
}

impl From<holdall_sys::Stat> for Stat {
    fn from(found: holdall_sys::Stat) -> Self {
        Self {
            is_file: found.kind == FileKind::File,
            is_folder: found.kind == FileKind::Dir,
            len_bytes: found.size,
            has_other_names: found.nlink > 1,
        }
    }
}

impl Storage for DirStorage {
    fn put_new(
        &self,
        key: &Key,
        bytes: &[u8],
        is_held: IsHeld<'_>,
    ) -> Result<Published, RepositoryError> {
        publish::publish_while(is_held, &self.tmp, &self.at(key), bytes)
    }

    fn put_file(&self, from: &Landed, key: &Key) -> Result<Published, RepositoryError> {
        let elsewhere = || failed("publishing", key)(io::ErrorKind::CrossesDevices.into());
        publish::publish_file(&from.file().ok_or_else(elsewhere)?, &self.at(key))
    }

    fn put_name(&self, key: &Key) -> Result<(), RepositoryError> {
        publish::make_empty(&self.at(key))
    }

    fn replace(&self, key: &Key, bytes: &[u8]) -> Result<(), RepositoryError> {
        publish::replace(&self.tmp, &self.at(key), bytes)
    }

    fn keep_as(&self, key: &Key, aside: &Key) -> Result<(), RepositoryError> {
        set_aside::keep_as(&self.at(key), &self.at(aside))
    }

    fn rename(&self, key: &Key, to: &Key) -> Result<(), RepositoryError> {
        let (from, to) = (self.at(key), self.at(to));
        from.rename(&to).map_err(failed("renaming to", &to))?;
        publish::sync_parent(&to)?;
        publish::sync_parent(&from)
    }

    fn open(&self, key: &Key) -> io::Result<Box<dyn ReadAt>> {
        Ok(Box::new(self.at(key).open()?))
    }

    fn stat(&self, key: &Key) -> io::Result<Option<Stat>> {
        match self.at(key).stat() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            found => Ok(Some(found?.into())),
        }
    }

    fn names(&self, folder: &Key) -> Result<Vec<OsString>, RepositoryError> {
        publish::names_in(&self.at(folder))
    }

    fn list(&self, folder: &Key) -> Result<Vec<(OsString, io::Result<Stat>)>, RepositoryError> {
        let dir = self.at(folder).open_dir().map_err(failed("listing", folder))?;
        let entries = dir.entries().map_err(failed("listing", folder))?;
        let stat = |name| Ok(dir.stat(name)?.into());
        let name = |name: holdall_sys::Name<'_>| OsStr::from_bytes(name.as_bytes()).to_owned();
        Ok(entries.iter().map(|entry| (name(entry.name()), stat(entry.name()))).collect())
    }

    fn remove(&self, key: &Key) -> Result<(), RepositoryError> {
        publish::remove(&self.at(key))
    }

    fn sync(&self, folder: &Key) -> Result<(), RepositoryError> {
        publish::sync_folder(&self.at(folder))
    }

    fn make_folder(&self, folder: &Key) -> Result<(), RepositoryError> {
        publish::make_dir(&self.at(folder))
    }

    fn file(&self, key: &Key) -> Option<PathBeneath> {
        Some(self.at(key))
    }
}

impl Landing for DirStorage {
    fn create_new(&self, key: &Key) -> io::Result<Box<dyn GrowingFile>> {
        Ok(Box::new(self.at(key).create_new(FILE_MODE)?))
    }

    fn open_growing(&self, key: &Key, to: OpenTo) -> io::Result<Box<dyn GrowingFile>> {
        let path = self.at(key);
        Ok(Box::new(match to {
            OpenTo::Read => path.open()?,
            OpenTo::Change => path.open_to_change()?,
        }))
    }

    fn put_aside(&self, key: &Key, aside: &Key) -> io::Result<()> {
        self.at(key).rename(&self.at(aside))
    }
}
