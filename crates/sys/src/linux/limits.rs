//! Limits of this process.

use std::io;

use rustix::process::{Resource, Rlimit};

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
