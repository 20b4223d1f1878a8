//! What lies under a path: its device, and how much room is left on it.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD};

use super::stat;

/// How many bytes this user may still write to the file system that holds `path`.
///
/// # Errors
///
/// What the system says.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// The device that `path` lies on, links followed, in the form of [`Stat::device`](crate::Stat).
///
/// # Errors
///
/// What the system says.
pub fn device_of(path: &Path) -> io::Result<u64> {
    Ok(stat::at(CWD.as_fd(), path.as_os_str().as_bytes(), AtFlags::empty())?.device)
}
