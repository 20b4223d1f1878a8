//! Keeping a damaged file under another name.

use std::io;
use std::os::unix::fs::FileExt;

use holdall_protocol::RepositoryError;
use holdall_sys::PathBeneath;

use crate::storage::publish::{FILE_MODE, failed, has_no_links, sync_parent};
use crate::storage::retry::says_lost;

/// What a disk loses, it loses by so many bytes or a part of them.
const SECTOR_BYTES: u64 = 4096;

/// Keeps a file under another name too, durably: linked, or copied where there are no links.
pub(crate) fn keep_as(path: &PathBeneath, aside: &PathBeneath) -> Result<(), RepositoryError> {
    match path.hard_link(aside) {
        Err(error) if has_no_links(&error) || is_on_another_disk(&error) => {
            copy_readable(path, aside)?
        }
        linked => linked.map_err(failed("linking", aside))?,
    }
    sync_parent(aside)
}

fn is_on_another_disk(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::CrossesDevices
}

/// Copies what can be read, with zeros in place of what the disk has lost.
fn copy_readable(path: &PathBeneath, aside: &PathBeneath) -> Result<(), RepositoryError> {
    let from = path.open().map_err(failed("opening", path))?;
    let to = aside.create_new(FILE_MODE).map_err(failed("making", aside))?;
    let len_bytes = from.metadata().map_err(failed("looking at", path))?.len();
    to.set_len(len_bytes).map_err(failed("writing", aside))?;
    let mut sector = [0; SECTOR_BYTES as usize];
    for at in (0..len_bytes).step_by(SECTOR_BYTES as usize) {
        let there = SECTOR_BYTES.min(len_bytes - at) as usize;
        let Some(sector) = sector.get_mut(..there) else { continue };
        // Read once: what is sound in it was asked for with patience before.
        match from.read_exact_at(sector, at).map_err(failed("reading", path)) {
            Ok(()) => to.write_all_at(sector, at).map_err(failed("writing", aside))?,
            Err(error) if says_lost(&error) => {}
            Err(error) => return Err(error),
        }
    }
    to.sync_all().map_err(failed("syncing", aside))
}
