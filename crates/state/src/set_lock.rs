//! One run at a time for each set of `config.toml`: a lock that a run holds from before its first hook until after its last.
//!
//! The lock of a repository begins after the hook `before`, and two runs of a set share what its hooks make. So a second
//! run would back up what the hooks of the first have just removed. The lock ends with the process that holds it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use holdall_sys::{guarded, lock};

use crate::error::StateError;
use crate::private_file;

/// The lock of one set.
pub struct SetLock {
    path: PathBuf,
}

/// This process backs the set up until it drops this.
pub struct IsBackingUp {
    _lock: lock::Held,
}

impl SetLock {
    /// That of a set in a state folder. The name is one that `config.toml` may have: letters, digits and `-_.`.
    pub fn in_state(state: &Path, set: &str) -> Self {
        Self { path: state.join("sets").join(format!("{set}.lock")) }
    }

    /// Takes the lock; `None` if another process has it. It also works in a folder that is full or read-only, once the
    /// file is there.
    ///
    /// # Errors
    /// If the file cannot be made or opened.
    pub fn take(&self) -> Result<Option<IsBackingUp>, StateError> {
        let file = self.open().or_else(|_| {
            private_file::write_new(&self.path, b"")?;
            self.open().map_err(self.cannot())
        })?;
        let held = lock::Held::exclusive(file).map_err(self.cannot())?;
        Ok(held.map(|lock| IsBackingUp { _lock: lock }))
    }

    /// Which process backs the set up, for people; `None` if there is none, or that cannot be known.
    pub fn holder(&self) -> Option<String> {
        lock::holder(&self.open().ok()?)
    }

    fn open(&self) -> io::Result<File> {
        guarded::open_regular(&self.path)
    }

    fn cannot(&self) -> impl FnOnce(io::Error) -> StateError {
        StateError::io(format!("cannot lock {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_backs_a_set_up_and_others_may_another_one() {
        let state = tempfile::tempdir().unwrap();
        let [home, etc] = ["home", "etc"].map(|set| SetLock::in_state(state.path(), set));
        let held = home.take().unwrap();
        assert!(held.is_some() && home.take().unwrap().is_none() && etc.take().unwrap().is_some());
        drop(held);
        assert!(home.take().unwrap().is_some());
    }
}
