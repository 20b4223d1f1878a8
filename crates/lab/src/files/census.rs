//! How many items there are, truly: file managers leave out what is hidden, and count a folder as one.

use std::path::Path;
use std::time::Instant;

use holdall_sys::{Dir, FileKind};
use serde::Serialize;

use super::{FilesMeasured, Work};
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

/// Counts all items below `dir` on its own file system, and the bytes of its files: the items and
/// bytes that a backup of it has. `dir` itself is one of them. What can not be read is not counted.
///
/// # Errors
/// [`LabError::Io`] if `dir` can not be read; [`LabError::Interrupted`].
pub fn count_items(dir: &Path, stop: &Stop) -> Result<FilesMeasured, LabError> {
    use std::os::unix::ffi::OsStrExt;
    let failed = |error| LabError::io("counting", dir, error);
    let dir_path = dir.canonicalize().map_err(failed)?;
    let top = dir_path.as_os_str().as_bytes();
    let device = Dir::open_absolute(top).and_then(|dir| dir.stat_self()).map_err(failed)?.device;
    let mut work = Work::default();
    let started = Instant::now();
    // Paths wait, not open directories: there may be more of those than may be open at once.
    let mut waiting = vec![top.to_vec()];
    work.items.directories = 1;
    while let Some(path) = waiting.pop() {
        stop.check()?;
        let begun = Instant::now();
        let Ok(opened) = Dir::open_absolute(&path) else { continue };
        let Ok(entries) = opened.entries() else { continue };
        for entry in entries.iter() {
            let Ok(stat) = opened.stat(entry.name()) else { continue };
            work.items.count(stat.kind);
            work.bytes += if stat.kind == FileKind::File { stat.size } else { 0 };
            if stat.kind == FileKind::Dir && stat.device == device {
                let slash: &[u8] = if path == b"/" { b"" } else { b"/" };
                waiting.push([&path[..], slash, entry.name().as_bytes()].concat());
            }
        }
        work.latency.add(begun.elapsed());
    }
    let bytes = std::mem::take(&mut work.bytes);
    Ok(FilesMeasured { bytes, ..work.measured("count", started.elapsed(), 1) })
}
