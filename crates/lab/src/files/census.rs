//! How many items there are, truly: file managers leave out what is hidden, and count a folder as one.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use holdall_sys::{Dir, FileKind, Stat};
use serde::Serialize;

use super::{FilesMeasured, Work};
use crate::child_path::child;
use crate::{LabError, Stop};

/// Counts of items.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Items {
    /// Regular files, each name counted: a file with two names is two items.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Symbolic links.
    pub links: u64,
    /// Devices, pipes and sockets.
    pub others: u64,
}

impl Items {
    /// So many files.
    pub(super) fn of_files(files: u64) -> Self {
        Self { files, ..Self::default() }
    }

    /// All of them.
    pub fn all(&self) -> u64 {
        self.files + self.directories + self.links + self.others
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.directories += other.directories;
        self.links += other.links;
        self.others += other.others;
    }

    fn count(&mut self, kind: FileKind) {
        match kind {
            FileKind::File => self.files += 1,
            FileKind::Dir => self.directories += 1,
            FileKind::Symlink => self.links += 1,
            _ => self.others += 1,
        }
    }
}

/// What a count leaves out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Directories that could not be read, or not wholly: what lies in them is not counted.
    pub unreadable_directories: u64,
    /// Directories at which another file system is mounted. They are counted, and what lies in them is
    /// not.
    pub mount_points: u64,
}

/// Counts all items below `dir` on its own file system, and the bytes of its files: the items and
/// bytes that a backup of it has. `dir` itself is one of them. What is not counted is told as
/// [`LeftOut`].
///
/// # Errors
/// [`LabError::Io`] if `dir` cannot be read; [`LabError::Interrupted`].
pub fn count_items(dir: &Path, stop: &Stop) -> Result<FilesMeasured, LabError> {
    let failed = |error| LabError::io("counting", dir, error);
    let top = dir.canonicalize().map_err(failed)?;
    let top = top.as_os_str().as_bytes();
    let device = Dir::open_absolute(top).and_then(|dir| dir.stat_self()).map_err(failed)?.device;
    let mut census = Census { device, ..Census::default() };
    let started = Instant::now();
    census.work.items.directories = 1;
    census.waiting.push(top.to_vec());
    while let Some(path) = census.waiting.pop() {
        stop.check()?;
        let begun = Instant::now();
        // What vanished meanwhile is not there to be counted.
        if census.look_into(&path).is_err_and(|error| error.kind() != io::ErrorKind::NotFound) {
            census.left_out.unreadable_directories += 1;
        }
        census.work.latency.add(begun.elapsed());
    }
    let bytes = std::mem::take(&mut census.work.bytes);
    let counted = census.work.measured("count", started.elapsed(), 1);
    Ok(FilesMeasured { bytes, left_out: Some(census.left_out), ..counted })
}

/// What was counted so far.
#[derive(Default)]
struct Census {
    /// The file system that is counted.
    device: u64,
    work: Work,
    left_out: LeftOut,
    /// Paths wait, not open directories: there may be more of those than may be open at once.
    waiting: Vec<Vec<u8>>,
}

impl Census {
    /// Counts what lies in a directory; an error if some of it could not be seen.
    fn look_into(&mut self, path: &[u8]) -> io::Result<()> {
        let opened = Dir::open_absolute(path)?;
        let mut result = Ok(());
        for entry in opened.entries()?.iter() {
            match opened.stat(entry.name()) {
                Ok(stat) => self.count(path, entry.name().as_bytes(), &stat),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => result = Err(error),
            }
        }
        result
    }

    fn count(&mut self, folder: &[u8], name: &[u8], stat: &Stat) {
        self.work.items.count(stat.kind);
        match stat.kind {
            FileKind::File => self.work.bytes += stat.size,
            FileKind::Dir if stat.device == self.device => {
                self.waiting.push(child(folder, name));
            }
            FileKind::Dir => self.left_out.mount_points += 1,
            _ => {}
        }
    }
}
