//! Directories held open, so that a walk goes step by step: no path is too long, and nobody can
//! swap a directory for a link behind its back.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use super::listing::{self, Listing};
use super::stat;
use crate::{FileKind, Name, Stat};

/// The longest path that [`Dir::open_absolute`] takes, in bytes.
pub const MAX_PATH_BYTES: usize = 64 * 1024;

/// The longest piece of a path that is given to the kernel at once: its limit is 4,096 with the
/// NUL at the end.
const MAX_PIECE_BYTES: usize = 4095;

const OPEN_DIR: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

const PASS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

const OPEN_FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// A directory held open for reading.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
}

impl Dir {
    /// Opens the directory at an absolute path of up to [`MAX_PATH_BYTES`].
    ///
    /// Links on the way are followed as usual; the last component must not be one. Reading does
    /// not touch access times where the user may ask for that.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a path that is relative, holds a NUL or is too long; else what the
    /// system says, `ENOTDIR` or `ELOOP` if a link or something else is there.
    pub fn open_absolute(path: &[u8]) -> io::Result<Self> {
        let (above, rest) = open_above(path)?;
        Ok(Self { fd: open_without_atime(above.as_ref(), rest, OPEN_DIR)? })
    }

    /// Opens the directory at an absolute path as one on the way to what lies in it, by name: it may be a
    /// link to one, and need not be readable, so that it cannot be listed.
    ///
    /// # Errors
    ///
    /// As for [`Dir::open_absolute`], but for a link.
    pub fn on_the_way(path: &[u8]) -> io::Result<Self> {
        let (above, rest) = open_above(path)?;
        Ok(Self { fd: open_with(above.as_ref(), rest, PASS)? })
    }

    /// Opens the directory `name` in this one; never follows a link.
    ///
    /// # Errors
    ///
    /// `ENOTDIR` or `ELOOP` if something else is there; else what the system says.
    pub fn open_child(&self, name: Name<'_>) -> io::Result<Self> {
        Ok(Self { fd: open_without_atime(Some(&self.fd), name.as_bytes(), OPEN_DIR)? })
    }

    /// Opens the regular file `name` for reading and stats it through the descriptor; never
    /// follows a link and never waits for a pipe's other end.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if it is not a regular file, `ELOOP` if it is a link; else what the system
    /// says.
    pub fn open_file(&self, name: Name<'_>) -> io::Result<(File, Stat)> {
        let file = File::from(open_without_atime(Some(&self.fd), name.as_bytes(), OPEN_FILE)?);
        let stat = stat::of_fd(&file)?;
        if stat.kind != FileKind::File {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok((file, stat))
    }

    /// Opens `name` for reading as [`Dir::open_file`] does, and does not look what it is: the caller
    /// asks its descriptor before anything that was read counts.
    ///
    /// # Errors
    ///
    /// `ELOOP` if it is a link; else what the system says.
    pub fn open_unseen(&self, name: Name<'_>) -> io::Result<File> {
        Ok(open_without_atime(Some(&self.fd), name.as_bytes(), OPEN_FILE)?.into())
    }

    /// Reads the metadata of `name`, of the link itself if it is one.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn stat(&self, name: Name<'_>) -> io::Result<Stat> {
        stat::at(self.as_fd(), name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Reads this directory's own metadata.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn stat_self(&self) -> io::Result<Stat> {
        stat::of_fd(self)
    }

    /// Reads where the symbolic link `name` points: any bytes, never followed.
    ///
    /// # Errors
    ///
    /// `InvalidInput` (`EINVAL`) if it is not a link; else what the system says.
    pub fn read_link(&self, name: Name<'_>) -> io::Result<Vec<u8>> {
        Ok(rustix::fs::readlinkat(&self.fd, name.as_bytes(), Vec::new())?.into_bytes())
    }

    /// Lists the names in this directory, sorted by their bytes, without `.` and `..`.
    ///
    /// It takes about 16 bytes for each entry and the names themselves: see
    /// [`Dir::entries_in_pieces`] for directories without end.
    ///
    /// # Errors
    ///
    /// What the system says; nothing of a listing that broke off is returned.
    pub fn entries(&self) -> io::Result<Listing> {
        let mut whole = Listing::default();
        self.entries_in_pieces(usize::MAX, |listing| {
            whole = listing;
            Ok(())
        })?;
        Ok(whole)
    }

    /// Lists this directory in pieces of about `piece_bytes` of memory, each sorted in itself.
    ///
    /// # Errors
    ///
    /// What the system says, or the first error of `take`; pieces taken before stay taken.
    pub fn entries_in_pieces(
        &self,
        piece_bytes: usize,
        take: impl FnMut(Listing) -> io::Result<()>,
    ) -> io::Result<()> {
        listing::read(self.as_fd(), piece_bytes, take)
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<OwnedFd> for Dir {
    /// Takes a descriptor that is known to be a directory's.
    fn from(fd: OwnedFd) -> Self {
        Self { fd }
    }
}

/// Opens the directories on the way of an absolute path as far as is needed for the kernel to take the rest.
fn open_above(path: &[u8]) -> io::Result<(Option<OwnedFd>, &[u8])> {
    if path.first() != Some(&b'/') || path.len() > MAX_PATH_BYTES {
        return Err(Errno::INVAL.into());
    }
    let (mut above, mut rest): (Option<OwnedFd>, _) = (None, path);
    while rest.len() > MAX_PIECE_BYTES {
        let (piece, after) = split_piece(rest)?;
        above = Some(open_with(above.as_ref(), piece, PASS)?);
        rest = after;
    }
    Ok((above, if rest.is_empty() { b"." } else { rest }))
}

/// Splits a long path after the last `/` that lets the first part fit; the second is relative.
fn split_piece(path: &[u8]) -> io::Result<(&[u8], &[u8])> {
    let fitting = path.get(..MAX_PIECE_BYTES).unwrap_or(path);
    let slash = fitting.iter().rposition(|&byte| byte == b'/').ok_or(Errno::NAMETOOLONG)?;
    let (piece, rest) = path.split_at(slash + 1);
    let skip = rest.iter().take_while(|&&byte| byte == b'/').count();
    Ok((piece, rest.split_at(skip).1))
}

fn open_with(at: Option<&OwnedFd>, path: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
    match at {
        Some(fd) => rustix::fs::openat(fd, path, flags, Mode::empty()),
        None => rustix::fs::openat(CWD, path, flags, Mode::empty()),
    }
}

/// Opens without touching access times where that is allowed: to the owner and to root.
fn open_without_atime(
    at: Option<&OwnedFd>,
    path: &[u8],
    flags: OFlags,
) -> rustix::io::Result<OwnedFd> {
    match open_with(at, path, flags.union(OFlags::NOATIME)) {
        Err(Errno::PERM) => open_with(at, path, flags),
        opened => opened,
    }
}
