//! Whom what is made in a folder is to belong to: where root works in another user's folder, to that user.
//!
//! A single backup as root would otherwise leave files in a user's cache, state and repository that this user can
//! neither read nor replace.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use super::{dir::Dir, metadata, stat, users};
use crate::Name;

/// The owner of a folder, if this process is root and the owner is not.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heir {
    uid: u32,
    gid: u32,
}

impl Heir {
    /// That of an open folder.
    pub(super) fn of(folder: BorrowedFd<'_>) -> Option<Self> {
        if users::effective_uid() != 0 {
            return None;
        }
        let found = stat::of_fd(folder).ok()?;
        (found.uid != 0).then_some(Self { uid: found.uid, gid: found.gid })
    }

    /// Gives this user what was just made and is open. Where the file system has no owners it stays as it is.
    pub(super) fn takes(self, made: impl AsFd) {
        let _ = metadata::set_owner(made, Some(self.uid), Some(self.gid));
    }

    /// The same for a folder that was just made. One that is not empty was put there by somebody else.
    pub(super) fn takes_folder(self, folder: BorrowedFd<'_>, name: Name<'_>) {
        let flags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW);
        let opened =
            rustix::fs::openat(folder, name.as_bytes(), flags | OFlags::CLOEXEC, Mode::empty());
        let Ok(made) = opened.map(Dir::from) else { return };
        let is_own = made.stat_self().is_ok_and(|found| found.uid == 0);
        if is_own && made.entries().is_ok_and(|entries| entries.iter().next().is_none()) {
            self.takes(&made);
        }
    }
}

/// Makes a folder with at most the permission bits `mode`. As root in another user's folder, it becomes that user's.
///
/// # Errors
///
/// What the system says: `EEXIST` if anything is there.
pub fn make_folder(path: &Path, mode: u32) -> io::Result<()> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    let flags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
    let above = rustix::fs::openat(CWD, above.unwrap_or(Path::new(".")), flags, Mode::empty())?;
    let name = path.file_name().unwrap_or_default();
    let name = Name::new(name.as_bytes()).map_err(|_| Errno::INVAL)?;
    rustix::fs::mkdirat(&above, name.as_bytes(), Mode::from_raw_mode(mode & 0o777))?;
    if let Some(heir) = Heir::of(above.as_fd()) {
        heir.takes_folder(above.as_fd(), name);
    }
    Ok(())
}

/// The same with those above it, unless it is there.
///
/// # Errors
///
/// As for [`make_folder`], but for a folder that is there.
pub fn make_folders(path: &Path, mode: u32) -> io::Result<()> {
    match make_folder(path, mode) {
        Err(_) if path.is_dir() => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            path.parent().map_or(Err(error), |above| make_folders(above, mode))?;
            make_folders(path, mode)
        }
        made => made,
    }
}
