//! Closing a file and listening to what that tells.

#![allow(unsafe_code, reason = "a descriptor is closed by its number")]

use std::fs::File;
use std::io;
use std::os::fd::IntoRawFd;

/// Closes a file. Dropping it does the same, and says nothing.
///
/// # Errors
///
/// What became of earlier writes, where a file system finds out now, as those of other computers do:
/// `ENOSPC` and `EDQUOT` where there is no room, `EIO`. It is closed all the same.
pub fn close(file: File) -> io::Result<()> {
    // SAFETY: the number is that of a file that nobody has any more.
    match unsafe { libc::close(file.into_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
