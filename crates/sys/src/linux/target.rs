//! Directories that a restore writes into: whatever the tree says, nothing lands outside them.
//!
//! Every call takes one checked [`Name`] and a directory that is already open, and none follows a
//! link, so there is no path that could lead elsewhere.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dev, FileType, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;

use super::own_links;
#[cfg(doc)]
use super::unfit::Unfit;
use crate::{DeviceNumber, Dir, FileKind, Name};

const OPEN_DIR: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// An open directory at or beneath a restore's target.
#[derive(Debug)]
pub struct TargetDir {
    dir: Dir,
}

impl TargetDir {
    /// Opens the target itself: the one path that its user chose, links on it included.
    ///
    /// # Errors
    ///
    /// `ENOTDIR` if it is no directory; else what the system says.
    pub fn open_root(path: &Path) -> io::Result<Self> {
        let flags = OPEN_DIR.difference(OFlags::NOFOLLOW);
        Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
    }

    /// The same of a path that nobody typed: root is led there by no link that another user can have made.
    ///
    /// # Errors
    ///
    /// As for [`TargetDir::open_root`], and [`Unfit::Link`].
    pub fn open_guarded(path: &Path) -> io::Result<Self> {
        Ok(own_links::open(path, OPEN_DIR.difference(OFlags::NOFOLLOW))?.into())
    }

    /// Reads this directory: its entries and their metadata.
    #[must_use]
    pub fn as_dir(&self) -> &Dir {
        &self.dir
    }

    /// Opens the directory `name`, which must lie right here and not be a link.
    ///
    /// # Errors
    ///
    /// `ENOTDIR` or `ELOOP` if something else is there; else what the system says.
    pub fn open_dir(&self, name: Name<'_>) -> io::Result<Self> {
        let name = name.as_bytes();
        match rustix::fs::openat2(&self.dir, name, OPEN_DIR, Mode::empty(), BENEATH) {
            // Before Linux 5.6, or where a sandbox hides it: one component that is not a link
            // cannot lead out either.
            Err(Errno::NOSYS | Errno::PERM) => {
                Ok(rustix::fs::openat(&self.dir, name, OPEN_DIR, Mode::empty())?.into())
            }
            opened => Ok(opened?.into()),
        }
    }

    /// Makes the directory `name` with at most the permission bits `mode`, and opens it.
    ///
    /// # Errors
    ///
    /// `EEXIST` if anything is there; else what the system says.
    pub fn create_dir(&self, name: Name<'_>, mode: u32) -> io::Result<Self> {
        let mode = Mode::from_raw_mode(mode & 0o7777);
        rustix::fs::mkdirat(&self.dir, name.as_bytes(), mode)?;
        self.open_dir(name)
    }

    /// Makes the file `name` with at most the permission bits `mode`, and opens it for reading and
    /// writing, whatever those are.
    ///
    /// # Errors
    ///
    /// `EEXIST` if anything is there, a dangling link too; else what the system says.
    pub fn create_file(&self, name: Name<'_>, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR
            .union(OFlags::CREATE)
            .union(OFlags::EXCL)
            .union(OFlags::NOFOLLOW)
            .union(OFlags::CLOEXEC);
        let mode = Mode::from_raw_mode(mode & 0o7777);
        Ok(rustix::fs::openat(&self.dir, name.as_bytes(), flags, mode)?.into())
    }

    /// Makes the symbolic link `name` that points to `target`, any bytes without NUL.
    ///
    /// # Errors
    ///
    /// `EEXIST` if anything is there; `ENAMETOOLONG` for a target over 4,095 bytes, `ENOENT` for
    /// an empty one; else what the system says.
    pub fn create_symlink(&self, target: &[u8], name: Name<'_>) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target, &self.dir, name.as_bytes())?)
    }

    /// Makes the fifo, socket or device `name` with at most the permission bits `mode`; `rdev` counts
    /// for devices only.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for any other kind; `EPERM` for a device where only root may; `EEXIST` if
    /// anything is there; else what the system says.
    pub fn create_special(
        &self,
        name: Name<'_>,
        kind: FileKind,
        rdev: DeviceNumber,
        mode: u32,
    ) -> io::Result<()> {
        let (kind, device) = match kind {
            FileKind::Fifo => (FileType::Fifo, 0),
            FileKind::Socket => (FileType::Socket, 0),
            FileKind::CharDevice => (FileType::CharacterDevice, number(rdev)),
            FileKind::BlockDevice => (FileType::BlockDevice, number(rdev)),
            FileKind::File | FileKind::Dir | FileKind::Symlink => return Err(Errno::INVAL.into()),
        };
        let mode = Mode::from_raw_mode(mode & 0o7777);
        Ok(rustix::fs::mknodat(&self.dir, name.as_bytes(), kind, mode, device)?)
    }

    /// Gives `existing` in the directory `from` one more name here, itself and not what it points
    /// to if it is a link.
    ///
    /// # Errors
    ///
    /// `EEXIST` if anything is there, `EXDEV` across file systems, `EMLINK` when it has too many
    /// names; else what the system says.
    pub fn link_from(&self, from: &Self, existing: Name<'_>, name: Name<'_>) -> io::Result<()> {
        let (existing, name) = (existing.as_bytes(), name.as_bytes());
        Ok(rustix::fs::linkat(&from.dir, existing, &self.dir, name, AtFlags::empty())?)
    }

    /// Removes `name`, which is not a directory.
    ///
    /// # Errors
    ///
    /// `EISDIR` for a directory; else what the system says.
    pub fn unlink(&self, name: Name<'_>) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.dir, name.as_bytes(), AtFlags::empty())?)
    }

    /// Removes the empty directory `name`.
    ///
    /// # Errors
    ///
    /// `ENOTEMPTY` or `ENOTDIR`; else what the system says.
    pub fn remove_dir(&self, name: Name<'_>) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.dir, name.as_bytes(), AtFlags::REMOVEDIR)?)
    }

    /// Moves `name` to `new_name` in the directory `to`, in place of what is there.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn rename(&self, name: Name<'_>, to: &Self, new_name: Name<'_>) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.dir, name.as_bytes(), &to.dir, new_name.as_bytes())?)
    }

    /// Moves `name` to `new_name` in the directory `to`, if nothing is there.
    ///
    /// # Errors
    ///
    /// `EEXIST` if anything is there; `EINVAL` on a file system that cannot promise it; else what
    /// the system says.
    pub fn rename_no_replace(
        &self,
        name: Name<'_>,
        to: &Self,
        new_name: Name<'_>,
    ) -> io::Result<()> {
        let (name, new_name) = (name.as_bytes(), new_name.as_bytes());
        Ok(rustix::fs::renameat_with(&self.dir, name, &to.dir, new_name, RenameFlags::NOREPLACE)?)
    }

    /// Waits until the names in this directory are on the disk.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.dir)?)
    }
}

impl AsFd for TargetDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }
}

impl From<OwnedFd> for TargetDir {
    fn from(fd: OwnedFd) -> Self {
        Self { dir: Dir::from(fd) }
    }
}

fn number(rdev: DeviceNumber) -> Dev {
    rustix::fs::makedev(rdev.major, rdev.minor)
}
