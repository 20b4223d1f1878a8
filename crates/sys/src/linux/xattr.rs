//! Extended attributes, raw: POSIX ACLs, file capabilities and labels are among them.
//!
//! Files and directories are read through their descriptor; links and special files, which are
//! never opened, by name in an open directory. File systems without attributes have none.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::XattrFlags;
use rustix::io::Errno;

use super::proc_path;
use crate::Name;

/// The most that Linux lets one attribute hold, and the most of a list of names, in bytes.
const MAX_BYTES: usize = 64 * 1024;

/// What fits without asking for the length first; most files have no attribute at all.
const FIRST_TRY_BYTES: usize = 512;

/// One extended attribute.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Xattr {
    /// The whole name, such as `user.note` or `system.posix_acl_access`.
    pub name: Vec<u8>,
    /// The value as the kernel has it.
    pub value: Vec<u8>,
}

/// Reads all attributes of an open file or directory, sorted by name; one call if it has none.
///
/// Some name spaces are shown to root alone (`trusted.`).
///
/// # Errors
///
/// What the system says; a file system without attributes is no error.
pub fn read_fd(fd: impl AsFd) -> io::Result<Vec<Xattr>> {
    read(&Subject::Fd(fd.as_fd()))
}

/// Reads all attributes of `name` in `dir`, of the link itself if it is one, without opening it.
///
/// # Errors
///
/// As for [`read_fd`]; and `ENOENT` where `/proc` is not mounted.
pub fn read_at(dir: impl AsFd, name: Name<'_>) -> io::Result<Vec<Xattr>> {
    read(&Subject::Path(proc_path::of_name(dir.as_fd(), name)))
}

/// Sets an attribute of an open file or directory, in place of an earlier value.
///
/// # Errors
///
/// `EPERM` where only root may, `EOPNOTSUPP` where the file system has none, `ENOSPC` or `E2BIG`
/// where it is too much; else what the system says.
pub fn set_fd(fd: impl AsFd, name: &[u8], value: &[u8]) -> io::Result<()> {
    Ok(rustix::fs::fsetxattr(fd, name, value, XattrFlags::empty())?)
}

/// Sets an attribute of `entry` in `dir`, of the link itself if it is one.
///
/// # Errors
///
/// As for [`set_fd`].
pub fn set_at(dir: impl AsFd, entry: Name<'_>, name: &[u8], value: &[u8]) -> io::Result<()> {
    let path = proc_path::of_name(dir.as_fd(), entry);
    Ok(rustix::fs::lsetxattr(path, name, value, XattrFlags::empty())?)
}

/// Removes an attribute of an open file or directory.
///
/// # Errors
///
/// `ENODATA` if there is none of that name; else what the system says.
pub fn remove_fd(fd: impl AsFd, name: &[u8]) -> io::Result<()> {
    Ok(rustix::fs::fremovexattr(fd, name)?)
}

/// Removes an attribute of `entry` in `dir`, of the link itself if it is one.
///
/// # Errors
///
/// As for [`remove_fd`].
pub fn remove_at(dir: impl AsFd, entry: Name<'_>, name: &[u8]) -> io::Result<()> {
    Ok(rustix::fs::lremovexattr(proc_path::of_name(dir.as_fd(), entry), name)?)
}

/// Whose attributes.
enum Subject<'a> {
    Fd(BorrowedFd<'a>),
    Path(Vec<u8>),
}

impl Subject<'_> {
    fn list(&self, buffer: &mut [u8]) -> rustix::io::Result<usize> {
        match self {
            Self::Fd(fd) => rustix::fs::flistxattr(fd, buffer),
            Self::Path(path) => rustix::fs::llistxattr(path, buffer),
        }
    }

    fn get(&self, name: &[u8], buffer: &mut [u8]) -> rustix::io::Result<usize> {
        match self {
            Self::Fd(fd) => rustix::fs::fgetxattr(fd, name, buffer),
            Self::Path(path) => rustix::fs::lgetxattr(path, name, buffer),
        }
    }
}

fn read(subject: &Subject<'_>) -> io::Result<Vec<Xattr>> {
    let names = match read_whole(|buffer| subject.list(buffer)) {
        Ok(names) if names.is_empty() => return Ok(Vec::new()),
        Ok(names) => names,
        Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut xattrs = Vec::new();
    for name in names.split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        match read_whole(|buffer| subject.get(name, buffer)) {
            Ok(value) => xattrs.push(Xattr { name: name.to_vec(), value }),
            // Removed since it was listed, or listed by a file system that cannot read it.
            Err(Errno::NODATA | Errno::OPNOTSUPP) => {}
            Err(error) => return Err(error.into()),
        }
    }
    xattrs.sort_unstable();
    Ok(xattrs)
}

/// Reads what may be small, and is at most [`MAX_BYTES`], with as few calls as will do.
fn read_whole(
    read: impl Fn(&mut [u8]) -> rustix::io::Result<usize>,
) -> rustix::io::Result<Vec<u8>> {
    let mut small = [0; FIRST_TRY_BYTES];
    match read(&mut small) {
        Ok(len) => return Ok(small.get(..len).unwrap_or_default().to_vec()),
        Err(Errno::RANGE) => {}
        Err(error) => return Err(error),
    }
    let mut large = vec![0; MAX_BYTES];
    let len = read(&mut large)?;
    large.truncate(len);
    large.shrink_to_fit();
    Ok(large)
}
