//! A folder for what a command restores or stores only to see how that goes: with enough room, and gone at the end.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use holdall_sys::removal::remove_tree;

use crate::exit::{Exit, Refusal};
use crate::terminal::output::size;

/// Room that is left to everybody else.
const SPARE_BYTES: u64 = 64 << 20;

/// A temporary folder; dropping it removes it with everything in it.
#[derive(Debug)]
pub(crate) struct WorkFolder {
    path: PathBuf,
}

impl WorkFolder {
    /// Makes one in the first of `candidates` that is on a disk, can be written and has
    /// `room_bytes`. `hint` is what to do where there is none.
    ///
    /// # Errors
    /// [`Refusal`] tells what is wrong with each of them.
    pub(crate) fn make(
        candidates: &[PathBuf],
        room_bytes: u64,
        hint: &str,
    ) -> Result<Self, Refusal> {
        let mut reasons = Vec::new();
        for candidate in candidates {
            match on_disk(candidate).and_then(|()| Self::make_in(candidate, room_bytes)) {
                Ok(made) => return Ok(made),
                Err(reason) => reasons.push(format!("{}: {reason}", candidate.display())),
            }
        }
        let needed = size(room_bytes.saturating_add(SPARE_BYTES));
        let message = format!("no place to work in ({needed} needed): {}", reasons.join("; "));
        Err(Refusal::new(Exit::Failed, message).hint(hint))
    }

    /// Makes one in a folder that is there, on whatever disk, if it has `room_bytes`.
    ///
    /// # Errors
    /// What is wrong with that folder.
    pub(crate) fn make_in(folder: &Path, room_bytes: u64) -> Result<Self, String> {
        let folder = folder.canonicalize().map_err(told)?;
        let free = holdall_sys::disk::free_bytes(&folder).map_err(told)?;
        if free < room_bytes.saturating_add(SPARE_BYTES) {
            return Err(format!("only {} free", size(free)));
        }
        let made = tempfile::Builder::new().prefix("holdall-work-").tempdir_in(&folder);
        Ok(Self { path: made.map_err(told)?.keep() })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it now.
    ///
    /// # Errors
    /// What the system says; what is left stays.
    pub(crate) fn remove(self) -> Result<()> {
        let removed = remove_tree(&self.path);
        removed.with_context(|| format!("cannot remove {}", self.path.display()))
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        // After `remove` there is nothing left; after a failure elsewhere, that one is told.
        let _ = remove_tree(&self.path);
    }
}

/// Makes a folder, unless it is there, and refuses one that is not on a disk.
fn on_disk(folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(told)?;
    match holdall_sys::memory::is_ram_disk(folder).map_err(told)? {
        true => Err("a RAM disk, not a real one".to_owned()),
        false => Ok(()),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn told(error: io::Error) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_without_room_or_on_a_ram_disk_is_refused_by_name() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let candidates = [folder.path().to_owned(), PathBuf::from("/proc/no/folder")];
        let refusal = WorkFolder::make(&candidates, u64::MAX / 4, "").unwrap_err();
        assert!(refusal.message.contains("free") && refusal.message.contains("/proc/no"));
        let made = WorkFolder::make(&candidates, 0, "").unwrap();
        assert!(made.path().starts_with(folder.path().canonicalize().unwrap()));
    }
}
