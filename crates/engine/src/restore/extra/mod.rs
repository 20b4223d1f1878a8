//! What a target has that the snapshot has not: `restore --delete` lists it before anything is done, and removes what was
//! listed when everything was restored.
//!
//! Invariants: only what lies below a source of the snapshot is ever listed, for a folder that merely leads there, such as
//! `/home`, has much that was never backed up. No link is followed and no other file system entered, so nothing outside of
//! the target is touched. A folder that the selection leaves out, that is a repository or holdall's own, or that the caller
//! names, is not entered: neither it nor anything in it goes, and no target may lie in one. Just what was listed is removed:
//! each item if it is what it was then, a folder once nothing is in it. What the snapshot has by another spelling stays.
//!
//! `find` joins tree and target, `look` sees what is in something that is only in the target, `guard` knows what never goes,
//! `spelling` which names may be one, `listed` what was listed, and `remove` removes that.

mod find;
mod guard;
mod listed;
mod look;
mod remove;
mod spelling;

use std::path::{Path, PathBuf};

use holdall_sys::TargetDir;

use self::listed::Listed;
use super::RestoreOptions;
use crate::EngineError;

/// Most things that are looked at: where there are more, the target is hardly the right one.
const MOST: u64 = 1_000_000;

/// Something that is only in the target: a folder stands for all that is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extra {
    /// Its path below the target.
    pub below: Vec<u8>,
    /// Whether it is a folder.
    pub is_dir: bool,
}

/// What is only in the target.
#[derive(Debug, Default)]
pub struct Extras {
    /// To be removed, by path.
    pub extras: Vec<Extra>,
    /// What stays all the same, by path below the target, and why.
    pub kept: Vec<(Vec<u8>, &'static str)>,
    /// All of it, as it was.
    listed: Listed,
}

/// Where something is to be made as a snapshot says, and how.
pub struct DeleteIn<'a> {
    /// The target of the restore.
    pub target: &'a Path,
    /// How it is restored.
    pub options: &'a RestoreOptions,
    /// Folders and files that stay wherever they are, such as the repository and the file of its password.
    pub keep: &'a [PathBuf],
}

impl DeleteIn<'_> {
    fn open(&self) -> std::io::Result<TargetDir> {
        match self.options.in_place {
            true => TargetDir::open_guarded(self.target),
            false => TargetDir::open_root(self.target),
        }
    }

    fn opening(&self) -> impl FnOnce(std::io::Error) -> EngineError {
        let what = format!("opening {}", self.target.display());
        |error| EngineError::io(what, error)
    }

    fn shown(&self, below: &[u8]) -> PathBuf {
        use std::os::unix::ffi::OsStrExt;
        self.target.join(std::ffi::OsStr::from_bytes(below))
    }
}

fn joined(below: &[u8], name: &[u8]) -> Vec<u8> {
    match below.is_empty() {
        true => name.to_vec(),
        false => [below, b"/", name].concat(),
    }
}
