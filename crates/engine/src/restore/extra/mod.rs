//! What a target has that the snapshot has not: `restore --delete` lists it before anything is done, and removes what was
//! listed when everything was restored.
//!
//! Invariants: only what lies below a source of the snapshot is ever listed, for a folder that merely leads there, such as
//! `/home`, has much that was never backed up. No link is followed and no other file system entered, so nothing outside of
//! the target is touched. What the selection leaves out stays, with the folders that it needs. What is removed has to be
//! what was listed, by its inode.
//!
//! `find` lists, `remove` removes.

mod find;
mod remove;

use holdall_sys::Stat;

use crate::restore::Selected;

pub use find::find_extras;
pub use remove::remove_extras;

/// Most things that are listed: where there are more, the target is hardly the right one.
const MOST: usize = 100_000;

/// Something that is only in the target: a folder stands for all that is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extra {
    /// Its absolute path in the snapshot, if it had one there.
    pub path: Vec<u8>,
    /// Its path below the target.
    pub below: Vec<u8>,
    /// Whether it is a folder.
    pub is_dir: bool,
    place: Place,
    inode: u64,
}

/// A file system, and the mount through which it is seen, where the system tells.
type Place = (u64, Option<u64>);

fn place_of(there: &Stat) -> Place {
    (there.device, there.mount_id)
}

/// What is only in the target.
#[derive(Debug, Default)]
pub struct Extras {
    /// To be removed, in the order of the tree.
    pub extras: Vec<Extra>,
    /// Folders below the target that are other file systems, which stay as they are.
    pub mounts: Vec<Vec<u8>>,
}

/// Whether something is to go by what is chosen: nothing that is only on the way to what is wanted is.
fn goes(select: Option<&super::Selection>, path: &[u8], is_dir: bool) -> bool {
    select.is_none_or(|select| select(path, is_dir) == Selected::Yes)
}
