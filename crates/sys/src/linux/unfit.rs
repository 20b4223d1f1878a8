//! Why something that is there is not used, as the source of an [`io::Error`].

use std::io;

use rustix::io::Errno;

/// Why something in a folder is not used. It is the source of the [`io::Error`] that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfit {
    /// It is a symbolic link, or lies behind one.
    Link,
    /// It is a pipe, a socket or a device.
    Special,
    /// It has more than one name, so that a change would show under the others too.
    ManyNames,
}

impl Unfit {
    /// The reason that an error carries, if it is one of these.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<Self> {
        error.get_ref().and_then(|source| source.downcast_ref()).copied()
    }
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Link => "a symbolic link is there, or on the way to it",
            Self::Special => "it is a pipe, a socket or a device",
            Self::ManyNames => "it has more than one name, and would change under all of them",
        })
    }
}

impl std::error::Error for Unfit {}

impl From<Unfit> for io::Error {
    fn from(unfit: Unfit) -> Self {
        Self::other(unfit)
    }
}

/// What the system says of what it did not open for such a reason, or for another.
pub(super) fn told(error: Errno) -> io::Error {
    match error {
        Errno::LOOP => Unfit::Link.into(),
        // A socket, or a device without a driver.
        Errno::NXIO | Errno::NODEV => Unfit::Special.into(),
        error => error.into(),
    }
}
