//! What a folder holds, in memory: names and contents without owners, and modes and times where they are asked for.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The content of a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Image {
    /// What is at each path below the folder: a file's bytes, or `None` for a folder.
    pub(super) entries: BTreeMap<PathBuf, Option<Vec<u8>>>,
    /// What is known of the mode and time of each.
    pub(super) metadata: BTreeMap<PathBuf, Metadata>,
}

/// Mode and time, as far as they are known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Metadata {
    pub(super) mode: Option<u32>,
    /// Seconds and nanoseconds.
    pub(super) time: Option<(i64, u32)>,
}

impl Image {
    /// Reads the content of `folder`.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let mut image = Self::default();
        image.read_below(folder, Path::new(""))?;
        Ok(image)
    }

    /// Reads modes and times too.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn read_with_metadata(folder: &Path) -> io::Result<Self> {
        let mut image = Self::read(folder)?;
        for path in image.entries.keys() {
            let found = fs::symlink_metadata(folder.join(path))?;
            let time = Some((found.mtime(), found.mtime_nsec() as u32));
            let metadata = Metadata { mode: Some(found.mode() & 0o7777), time };
            image.metadata.insert(path.clone(), metadata);
        }
        Ok(image)
    }

    fn read_below(&mut self, folder: &Path, below: &Path) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = below.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                self.entries.insert(path.clone(), None);
                self.read_below(&entry.path(), &path)?;
            } else {
                self.entries.insert(path, Some(fs::read(entry.path())?));
            }
        }
        Ok(())
    }

    /// Puts the content into `folder`, which is empty or not there.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn lay_down(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        for (path, content) in &self.entries {
            match content {
                None => fs::create_dir(folder.join(path))?,
                Some(bytes) => fs::write(folder.join(path), bytes)?,
            }
        }
        // What is in a folder comes before the folder, whose time it changes.
        for (path, metadata) in self.metadata.iter().rev() {
            metadata.put_on(&folder.join(path))?;
        }
        Ok(())
    }

    /// The bytes of the file at `path`, if there is one.
    #[must_use]
    pub fn file(&self, path: &Path) -> Option<&[u8]> {
        self.entries.get(path)?.as_deref()
    }

    /// The paths of all files.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.entries.iter().filter(|(_, content)| content.is_some()).map(|(path, _)| path.as_path())
    }

    /// The same with other bytes at `path`.
    #[must_use]
    pub fn with(&self, path: &Path, bytes: Vec<u8>) -> Self {
        let mut changed = self.clone();
        changed.entries.insert(path.to_owned(), Some(bytes));
        changed
    }
}

impl Metadata {
    fn put_on(self, path: &Path) -> io::Result<()> {
        if let Some((secs, nanos)) = self.time {
            let time = holdall_sys::Timestamp { secs, nanos };
            holdall_sys::metadata::set_mtime(fs::File::open(path)?, time)?;
        }
        self.mode.map_or(Ok(()), |mode| fs::set_permissions(path, PermissionsExt::from_mode(mode)))
    }
}
