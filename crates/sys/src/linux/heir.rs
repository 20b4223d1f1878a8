//! Whom what is made in a folder is to belong to: where root works in another user's folder, to that user.
//!
//! A single backup as root would otherwise leave files in a user's cache, state and repository that this user can
//! neither read nor replace.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{Mode, OFlags};

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
