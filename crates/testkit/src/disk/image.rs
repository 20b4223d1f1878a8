//! What a folder holds, in memory: names and contents, without owners and times.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The content of a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Image {
    /// What is at each path below the folder: a file's bytes, or `None` for a folder.
    pub(super) entries: BTreeMap<PathBuf, Option<Vec<u8>>>,
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
