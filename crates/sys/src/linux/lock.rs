//! Advisory locks on open files, which end with the process that holds them.
//!
//! They hold among processes on this computer; network file systems may not pass them on.

use std::fs::File;
use std::io;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

/// Takes the file for this descriptor alone; `false` if another holds it.
///
/// # Errors
///
/// What the system says, `ENOLCK` or `EOPNOTSUPP` where the file system has no locks.
pub fn try_exclusive(file: &File) -> io::Result<bool> {
    attempt(file, FlockOperation::NonBlockingLockExclusive)
}

/// Takes the file together with others that share it; `false` if another has it exclusively.
///
/// # Errors
///
/// As for [`try_exclusive`].
pub fn try_shared(file: &File) -> io::Result<bool> {
    attempt(file, FlockOperation::NonBlockingLockShared)
}

/// Lets the file go; closing it does so too.
///
/// # Errors
///
/// What the system says.
pub fn unlock(file: &File) -> io::Result<()> {
    Ok(rustix::fs::flock(file, FlockOperation::NonBlockingUnlock)?)
}

/// Says whether an error of these means that there are no locks where the file lies.
#[must_use]
pub fn is_unsupported(error: &io::Error) -> bool {
    let unsupported = [Errno::NOLCK, Errno::OPNOTSUPP, Errno::NOSYS, Errno::INVAL];
    unsupported.iter().any(|errno| Some(errno.raw_os_error()) == error.raw_os_error())
}

fn attempt(file: &File, operation: FlockOperation) -> io::Result<bool> {
    match rustix::fs::flock(file, operation) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
