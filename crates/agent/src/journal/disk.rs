//! One file system that is watched: where it lies, and the files on it, by their handles.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use holdall_sys::FileKind;
use holdall_sys::fanotify::{FileSystem, Found};
use holdall_sys::fanotify_events::{FileSystemId, Handle};

use super::reason::Reason;
use super::set::SetJournal;

/// More files that are to be looked at later are too many.
const LATER_MAX: usize = 10_000;
/// The directory itself, as a name in it.
pub(super) const ITSELF: &[u8] = b".";

/// A file system that is watched.
pub(super) struct Disk {
    pub(super) id: FileSystemId,
    pub(super) device: u64,
    /// Where all of it is mounted.
    pub(super) point: PathBuf,
    /// Where else all of it is mounted.
    pub(super) others: Vec<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct OwnHandle {
    pub(super) file_system: FileSystemId,
    kind: i32,
    bytes: Vec<u8>,
}

/// Files that are to be looked at when a run begins.
#[derive(Debug, Default)]
pub(super) struct Later {
    /// They were written, and not closed since.
    pub(super) open: HashSet<OwnHandle>,
    /// They got a name, or lost one, and had several after that.
    pub(super) new_names: HashSet<OwnHandle>,
}

impl Later {
    /// Adds a file to one of the two. Too many of them are everything.
    pub(super) fn add(
        &mut self,
        file: &Handle<'_>,
        to: impl FnOnce(&mut Self) -> &mut HashSet<OwnHandle>,
        sets: &mut [SetJournal],
    ) {
        let files = to(self);
        if files.len() >= LATER_MAX {
            files.clear();
            give_all_up(sets, &Reason::TooManyPlaces);
        }
        files.insert(OwnHandle::of(file));
    }
}

impl Disk {
    pub(super) fn open(&self) -> io::Result<FileSystem> {
        let opened = FileSystem::at(&self.point)?;
        match opened.id() == self.id {
            true => Ok(opened),
            false => Err(io::Error::other(format!("{} was mounted over", self.point.display()))),
        }
    }

    /// Notes that a file that was found may have changed, unless it has no name any more.
    pub(super) fn note(&self, found: &Found, sets: &mut [SetJournal]) {
        let Ok(stat) = found.stat() else { return };
        if stat.nlink == 0 {
            return;
        }
        if stat.nlink > 1 && stat.kind != FileKind::Dir {
            return self.give_up(sets, &Reason::SeveralNames);
        }
        let Some(path) = found.path().ok().filter(|path| is_at(path, stat.inode)) else {
            return self.give_up(sets, &Reason::Doubt("a file has no path".to_owned()));
        };
        let (directory, name) = match stat.kind {
            FileKind::Dir => (&*path, None),
            _ => (path.parent().unwrap_or(&path), path.file_name()),
        };
        for directory in self.places(directory) {
            changed(sets, &directory, name, false);
        }
    }

    /// All places of a directory, by the one through the mount of the whole.
    pub(super) fn places(&self, path: &Path) -> Vec<PathBuf> {
        let below = path.strip_prefix(&self.point).unwrap_or(path);
        let others = self.others.iter().map(|point| joined(point, below));
        std::iter::once(path.to_owned()).chain(others).collect()
    }

    pub(super) fn give_up(&self, sets: &mut [SetJournal], reason: &Reason) {
        let here = sets.iter_mut().filter(|set| set.lies_on(self.device));
        here.for_each(|set| set.give_up(reason.clone()));
    }
}

impl OwnHandle {
    pub(super) fn of(handle: &Handle<'_>) -> Self {
        let Handle { file_system, kind, bytes } = *handle;
        Self { file_system, kind, bytes: bytes.to_vec() }
    }

    pub(super) fn borrowed(&self) -> Handle<'_> {
        Handle { file_system: self.file_system, kind: self.kind, bytes: &self.bytes }
    }
}

/// Whether that is the path of this file, and not what the kernel calls one whose place it does not know.
pub(super) fn is_at(path: &Path, inode: u64) -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::symlink_metadata(path).is_ok_and(|there| there.ino() == inode)
}

pub(super) fn changed(
    sets: &mut [SetJournal],
    directory: &Path,
    name: Option<&OsStr>,
    is_deep: bool,
) {
    let name = name.map(OsStrExt::as_bytes).unwrap_or(ITSELF);
    sets.iter_mut().for_each(|set| set.changed(directory, name, is_deep));
}

pub(super) fn give_all_up(sets: &mut [SetJournal], reason: &Reason) {
    sets.iter_mut().for_each(|set| set.give_up(reason.clone()));
}

/// Joining nothing would end the path with a slash.
fn joined(directory: &Path, below: &Path) -> PathBuf {
    match below.as_os_str().is_empty() {
        true => directory.to_owned(),
        false => directory.join(below),
    }
}

pub(super) fn path(bytes: &[u8]) -> PathBuf {
    OsStr::from_bytes(bytes).into()
}
