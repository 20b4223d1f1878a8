//! What a target has that the snapshot has not: `restore --delete` lists it before anything is done, and removes what was
//! listed when everything was restored.
//!
//! Invariants: only what lies below a source of the snapshot is ever listed, for a folder that merely leads there, such as
//! `/home`, has much that was never backed up. No link is followed and no other file system entered, so nothing outside of
//! the target is touched. Repositories, data of servers, and folders that the caller names stay, with what lies in them: no
//! snapshot has these. What the selection leaves out stays, with the folders that it needs. What is removed has to be as it
//! was listed. Where a file system takes two spellings for one name, what the snapshot has by either is in the snapshot.
//!
//! `find` joins tree and target, `look` sees what is in something that is only in the target, `remove` removes.

mod find;
mod look;
mod remove;

use std::path::{Path, PathBuf};

use holdall_sys::{Stat, TargetDir, Timestamp};

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
    /// Its absolute path in the snapshot, if it had one there.
    path: Vec<u8>,
    seen: Seen,
}

/// What was seen of something and all that is in it: whatever comes or changes shows in one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    place: Place,
    inode: u64,
    items: u64,
    newest_change: Timestamp,
}

/// What is only in the target.
#[derive(Debug, Default)]
pub struct Extras {
    /// To be removed, by path.
    pub extras: Vec<Extra>,
    /// What stays all the same, by path below the target, and why.
    pub kept: Vec<(Vec<u8>, &'static str)>,
}

/// Where something is to be made as a snapshot says, and how.
pub struct DeleteIn<'a> {
    /// The target of the restore.
    pub target: &'a Path,
    /// How it is restored.
    pub options: &'a RestoreOptions,
    /// Folders that stay wherever they are, such as that of the repository.
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
}

/// A file system, and the mount through which it is seen, where the system tells.
type Place = (u64, Option<u64>);

fn place_of(there: &Stat) -> Place {
    (there.device, there.mount_id)
}

fn joined(below: &[u8], name: &[u8]) -> Vec<u8> {
    match below.is_empty() {
        true => name.to_vec(),
        false => [below, b"/", name].concat(),
    }
}
