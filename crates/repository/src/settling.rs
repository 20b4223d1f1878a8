//! Moving packs of chunks to the places where they stay, and out of those that are to be emptied.
//!
//! Nodes stay in the directory: a backup compares with them, and a listing reads them. So do tails, until they are packs.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use holdall_format::{BlockKind, PackName};
use holdall_protocol::RepositoryError;
use holdall_sys::disk::free_bytes;

use crate::storage::layout::Layout;
use crate::storage::placed::{PackPlace, PlacedPacks, Places};
use crate::store::Store;

/// Left free in every place, for whatever else is kept on its disk.
const RESERVE_BYTES: u64 = 256 << 20;

/// What was moved, and what could not be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settled {
    /// Packs moved.
    pub packs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packs that are not yet where they should be.
    pub waiting: u64,
    /// Why the first of them is not.
    pub why: Option<String>,
}

/// Where a pack should go.
enum Aim<'a> {
    Place(&'a PackPlace),
    Directory,
}

impl Store {
    /// Says in which places packs may lie beside the directory. One that is left out is to be empty.
    ///
    /// # Errors
    /// [`RepositoryError::Refused`] where packs lie in a place that would not be known any more; [`RepositoryError::Io`].
    pub fn set_places(&self, places: &[PackPlace]) -> Result<(), RepositoryError> {
        let Some(placed) = self.layout().placed() else { return Ok(()) };
        let (now, folder) = (placed.places()?, self.repository());
        if now.as_ref().map_or(&[][..], |now| &now.all) == places {
            return Ok(());
        }
        for gone in now.into_iter().flat_map(|now| now.all) {
            let is_kept = places.iter().any(|place| place.id == gone.id);
            if !is_kept && !placed.in_place(&gone.id)?.is_empty() {
                let reason =
                    format!("packs lie in {} still: drain it first", gone.folder.display());
                return Err(RepositoryError::Refused { reason });
            }
        }
        self.lease().renew()?;
        placed.set_places(&Places { folder, all: places.to_vec() })
    }

    /// Moves packs of chunks from the directory to the place with the most room, and out of places that are to be emptied.
    /// What cannot be moved stays where it is, whole, and is counted.
    ///
    /// # Errors
    /// [`RepositoryError::Interrupted`] once `should_stop` is set; what the directory or the lease says.
    pub fn settle(&self, should_stop: &AtomicBool) -> Result<Settled, RepositoryError> {
        let mut settled = Settled::default();
        let Some(placed) = self.layout().placed() else { return Ok(settled) };
        let Some(places) = placed.places()?.filter(|places| !places.all.is_empty()) else {
            return Ok(settled);
        };
        for pack in self.unsettled(placed, &places)? {
            if should_stop.load(Ordering::Acquire) {
                return Err(RepositoryError::Interrupted);
            }
            self.lease().renew()?;
            match move_one(placed, &places, self.layout().root().path(), &pack) {
                Ok(0) => {}
                Ok(bytes) => {
                    settled.packs += 1;
                    settled.bytes += bytes;
                }
                Err(error) => {
                    settled.waiting += 1;
                    settled.why.get_or_insert_with(|| error.to_string());
                }
            }
        }
        Ok(settled)
    }

    /// Packs that are not where they should be.
    fn unsettled(
        &self,
        placed: &PlacedPacks,
        places: &Places,
    ) -> Result<Vec<PackName>, RepositoryError> {
        let state = self.index().state();
        let is_one_open = places.all.iter().any(|place| !place.is_draining);
        let here = if is_one_open { placed.in_directory()? } else { BTreeSet::new() };
        let chunks = state.packs.iter().filter(|pack| pack.kind == BlockKind::Chunks);
        let mut all: Vec<PackName> = chunks
            .map(|pack| pack.name)
            .filter(|pack| here.contains(pack) && !state.condemned.contains(pack))
            .collect();
        for place in places.all.iter().filter(|place| place.is_draining) {
            all.extend(placed.in_place(&place.id)?);
        }
        Ok(all)
    }
}

/// How many packs of the repository in a directory lie in a place. Nobody has to open it for that.
///
/// # Errors
/// [`RepositoryError::Io`].
pub fn packs_in_place(dir: &Path, id: &str) -> Result<usize, RepositoryError> {
    Layout::new(dir).placed().map_or(Ok(0), |placed| Ok(placed.in_place(id)?.len()))
}

/// Removes what the repository in a directory, which is to be deleted, has in places. Those whose disks are not there, or which
/// another copy of it uses, keep it, and are given back.
///
/// # Errors
/// [`RepositoryError::Io`].
pub fn clear_places(dir: &Path) -> Result<Vec<PackPlace>, RepositoryError> {
    Layout::new(dir).placed().map_or(Ok(Vec::new()), PlacedPacks::clear)
}

fn move_one(
    placed: &PlacedPacks,
    places: &Places,
    dir: &Path,
    pack: &PackName,
) -> Result<u64, RepositoryError> {
    match aim(places, dir)? {
        Aim::Place(place) => placed.move_to(pack, place),
        Aim::Directory => placed.move_back(pack),
    }
}

/// The place with the most room; the directory where all places are to be emptied.
fn aim<'p>(places: &'p Places, dir: &Path) -> Result<Aim<'p>, RepositoryError> {
    let refused = |reason: &str| RepositoryError::Refused { reason: reason.to_owned() };
    let mut open = places.all.iter().filter(|place| !place.is_draining).peekable();
    if open.peek().is_none() {
        // Backups arrive there, and need room.
        return match free_bytes(dir).unwrap_or_default() > RESERVE_BYTES {
            true => Ok(Aim::Directory),
            false => Err(refused("the data folder is full: make room, or add another place")),
        };
    }
    let there = open.filter(|place| place.is_there());
    let room = there.map(|place| (free_bytes(&place.folder).unwrap_or_default(), place));
    let (free, place) = room
        .max_by_key(|(free, _)| *free)
        .ok_or_else(|| refused("none of the storage places is there: mount their disks"))?;
    match free > RESERVE_BYTES {
        true => Ok(Aim::Place(place)),
        false => Err(refused("the storage places are full: add one, or make room")),
    }
}

#[cfg(test)]
mod tests;
