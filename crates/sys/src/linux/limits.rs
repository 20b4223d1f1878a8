//! Limits of this process.

use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit};

/// What this process, or the whole system, has no more of. Who meets it is not at fault: whatever is tried
/// next lacks it, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// Files that one process may have open.
    Files,
    /// Files that all processes together may have open.
    FilesOfAll,
    /// Memory.
    Memory,
}

impl Lack {
    /// What an error says is lacking, if it is that.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<Self> {
        match Errno::from_io_error(error)? {
            Errno::MFILE => Some(Self::Files),
            Errno::NFILE => Some(Self::FilesOfAll),
            Errno::NOMEM => Some(Self::Memory),
            _ => None,
        }
    }
}

/// Raises how many files may be open at once to the most that is allowed, and returns that
/// number; `None` is no limit.
///
/// # Errors
///
/// What the system says; the limit is then as it was.
pub fn raise_open_files() -> io::Result<Option<u64>> {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        rustix::process::setrlimit(Resource::Nofile, raised)?;
    }
    Ok(limit.maximum)
}

/// Has the system write no core file of this process, nor of those that it starts. A program that takes cores from the
/// kernel in place of a file is told so, and has to keep to it.
///
/// # Errors
///
/// What the system says; the limit is then as it was.
pub fn refuse_core_files() -> io::Result<()> {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    Ok(rustix::process::setrlimit(Resource::Core, none)?)
}
