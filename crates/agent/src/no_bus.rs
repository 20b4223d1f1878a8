//! In the place of `bus` where that is not built in: everything is unknown, and nothing is shown.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use crate::conditions::Conditions;
use crate::schedule::Notice;

/// What the computer is like, ready to be polled for: it is readable when that may have changed.
pub struct Surroundings {
    changed: UnixStream,
    _never_written: UnixStream,
}

impl Surroundings {
    /// Begins to watch.
    ///
    /// # Errors
    /// What the system says.
    pub fn watch() -> io::Result<Self> {
        let (changed, never_written) = UnixStream::pair()?;
        Ok(Self { changed, _never_written: never_written })
    }

    /// What the computer is like now.
    #[must_use]
    pub fn now(&self) -> Conditions {
        Conditions::default()
    }
}

impl AsFd for Surroundings {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.changed.as_fd()
    }
}

/// Shows nothing.
///
/// # Errors
/// Always.
pub fn show(_: &Notice) -> Result<(), &'static str> {
    Err("it is built without D-Bus")
}
