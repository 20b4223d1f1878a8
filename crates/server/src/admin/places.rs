//! Storage places: what an administrator says of them, and how they are.

use std::path::{Path, PathBuf};

use holdall_protocol::RepositoryError;
use holdall_repository::{PackPlace, make_place, place_id};
use holdall_sys::disk::room_if_told;

use super::administration::Administration;
use super::entries::{PlaceEntry, Places};
use crate::ServerError;
use crate::accounts::StoragePlace;
use crate::auth::identity::random;

fn new_id() -> Result<String, ServerError> {
    let mut bytes = [0; 8];
    random(&mut bytes)?;
    Ok(format!("{:016x}", u64::from_be_bytes(bytes)))
}

impl Administration<'_> {
    pub(super) fn places(&self) -> Result<Places, ServerError> {
        let places = self.accounts.places()?;
        Ok(Places {
            places: places.iter().map(|place| self.place(place)).collect::<Result<_, _>>()?,
        })
    }

    fn place(&self, place: &StoragePlace) -> Result<PlaceEntry, ServerError> {
        let is_there = PackPlace::from(place).is_there();
        let room = is_there.then(|| room_if_told(&place.folder).ok().flatten()).flatten();
        Ok(PlaceEntry {
            name: place.name.clone(),
            folder: place.folder.display().to_string(),
            is_there,
            is_draining: place.is_draining,
            packs: self.stores.packs_in_place(&place.id)?,
            free_bytes: room.map(|room| room.free_bytes),
            total_bytes: room.map(|room| room.total_bytes),
        })
    }

    pub(super) fn add_place(&self, name: &str, folder: &str) -> Result<Places, ServerError> {
        let folder = self.fit_for_place(Path::new(folder))?;
        // It may have been one before.
        let marked = place_id(&folder);
        let id = marked.clone().map_or_else(new_id, Ok)?;
        let place = StoragePlace { name: name.to_owned(), id, folder, is_draining: false };
        self.accounts.add_place(place.clone())?;
        if marked.is_none()
            && let Err(error) = make_place(&place.folder, &place.id)
        {
            self.accounts.remove_place(name)?;
            return Err(error.into());
        }
        self.log(&format!("packs go to the place {name}, {}, from now on", place.folder.display()));
        Ok(Places { places: vec![self.place(&place)?] })
    }

    /// The folder, as it is without links, if packs may lie in it.
    fn fit_for_place(&self, folder: &Path) -> Result<PathBuf, ServerError> {
        let found = |source| ServerError::io("looking at", folder, source);
        if !folder.is_absolute() {
            return Err(ServerError::refused("a place is a folder from / on".to_owned()));
        }
        let folder = folder.canonicalize().map_err(found)?;
        let data = self.stores.folder().path().canonicalize().map_err(found)?;
        if folder.starts_with(&data) || data.starts_with(&folder) {
            return Err(ServerError::refused(format!(
                "{} is in the data folder, or around it: a place is a folder on another disk",
                folder.display()
            )));
        }
        Ok(folder)
    }

    pub(super) fn drain_place(&self, name: &str) -> Result<Places, ServerError> {
        self.accounts.drain_place(name)?;
        self.log(&format!("the place {name} is emptied from now on"));
        self.named_place(name)
    }

    pub(super) fn remove_place(&self, name: &str) -> Result<Places, ServerError> {
        let Places { places } = self.named_place(name)?;
        if let Some(place) = places.iter().find(|place| place.packs > 0) {
            return Err(ServerError::refused(format!(
                "{} packs lie in it: `holdall admin place drain {name}` moves them out",
                place.packs
            )));
        }
        self.accounts.remove_place(name)?;
        self.log(&format!("the place {name} was removed"));
        Ok(Places { places })
    }

    fn named_place(&self, name: &str) -> Result<Places, ServerError> {
        let places = self.places()?.places.into_iter().filter(|place| place.name == name);
        let places = Places { places: places.collect() };
        match places.places.is_empty() {
            true => Err(ServerError::refused(format!(
                "there is no place {name:?}; `holdall admin place list` shows them"
            ))),
            false => Ok(places),
        }
    }

    /// Moves packs to their places in all repositories that are open, and tells the log what keeps them.
    pub(crate) fn settle_open(&self) {
        if self.accounts.places().is_ok_and(|places| places.is_empty()) {
            return;
        }
        for name in self.stores.open_names() {
            self.settle(&name);
        }
    }

    /// Whether all packs of a repository are where they should be; what keeps them is told.
    pub(super) fn settle(&self, name: &str) -> bool {
        match self.stores.settle(name, self.should_stop) {
            Ok(settled) => {
                if settled.packs > 0 {
                    let (packs, bytes) = (settled.packs, settled.bytes);
                    self.log(&format!(
                        "{name}: {packs} packs of {bytes} bytes moved to their places"
                    ));
                }
                let waits = settled
                    .why
                    .map(|why| format!("{} packs wait in the data folder: {why}", settled.waiting));
                self.found(waits.as_ref(), name);
                waits.is_none()
            }
            Err(RepositoryError::Interrupted) => false,
            Err(error) => {
                self.log(&format!("packs of {name} could not be moved: {error}"));
                false
            }
        }
    }
}
