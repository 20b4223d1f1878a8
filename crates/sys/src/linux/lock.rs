//! Advisory locks on open files, which end with the process that holds them.
//!
//! They hold among processes on this computer; network file systems may not pass them on. A lock
//! belongs to the open file, which a process that is just being started has open, too, until it runs
//! its own program: closing alone would leave the file locked for that long.

use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

pub use super::lock_holder::holder;

/// What the system says where the file lies on something that has no locks.
const UNSUPPORTED: [Errno; 4] = [Errno::NOLCK, Errno::OPNOTSUPP, Errno::NOSYS, Errno::INVAL];

/// A file that is locked until this is dropped.
#[derive(Debug)]
pub struct Held {
    file: File,
    is_locked: bool,
}

impl Held {
    /// Takes the file for this descriptor alone; `None` if another holds it.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn exclusive(file: File) -> io::Result<Option<Self>> {
        Self::attempt(file, FlockOperation::NonBlockingLockExclusive)
    }

    /// Takes the file together with others that share it; `None` if another has it exclusively.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn shared(file: File) -> io::Result<Option<Self>> {
        Self::attempt(file, FlockOperation::NonBlockingLockShared)
    }

    /// Whether there are locks where the file lies; otherwise this keeps nobody out.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.is_locked
    }

    fn attempt(file: File, operation: FlockOperation) -> io::Result<Option<Self>> {
        match rustix::fs::flock(&file, operation) {
            Ok(()) => Ok(Some(Self { file, is_locked: true })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) if UNSUPPORTED.contains(&errno) => Ok(Some(Self { file, is_locked: false })),
            Err(error) => Err(error.into()),
        }
    }
}

impl Deref for Held {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl DerefMut for Held {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.file
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // A file that cannot be unlocked is unlocked when the last who has it open closes it.
        let _ = rustix::fs::flock(&self.file, FlockOperation::NonBlockingUnlock);
    }
}
