//! Names of open descriptors under `/proc`, for the calls that have no variant with one.

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::Name;

/// The path that leads through the descriptor to the very file it is open on.
pub(crate) fn of_fd(fd: BorrowedFd<'_>) -> Vec<u8> {
    format!("/proc/self/fd/{}", fd.as_raw_fd()).into_bytes()
}

/// The path of `name` in an open directory; only the last step may be a link of somebody's.
pub(crate) fn of_name(dir: BorrowedFd<'_>, name: Name<'_>) -> Vec<u8> {
    let mut path = of_fd(dir);
    path.push(b'/');
    path.extend_from_slice(name.as_bytes());
    path
}
