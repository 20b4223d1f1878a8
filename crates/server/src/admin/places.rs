//! Storage places: what an administrator says of them, and how they are.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use holdall_meter::{counted, size};
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
        let places = places.iter().map(|place| self.place(place)).collect::<Result<_, _>>()?;
        Ok(Places { places, waiting: self.stores.waiting() })
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
        Ok(Places { places: vec![self.place(&place)?], waiting: Vec::new() })
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
        let device = |path: &Path| path.metadata().map(|found| found.dev()).map_err(found);
        if device(&folder)? == device(&data)? {
            return Err(ServerError::refused(format!(
                "{} is on the same disk as the data folder: is the other one mounted?",
                folder.display()
            )));
        }
        let mut entries = folder.read_dir().map_err(found)?.flatten();
        let is_other = |name: &OsString| name != "lost+found";
        if place_id(&folder).is_none() && entries.any(|entry| is_other(&entry.file_name())) {
            return Err(ServerError::refused(format!(
                "{} is not empty: make a folder for the backups in it",
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
        let Places { places, waiting } = self.named_place(name)?;
        // A pack may be on its way to one that is in use.
        if places.iter().any(|place| place.packs > 0 || !place.is_draining) {
            return Err(ServerError::refused(format!(
                "it is in use: `holdall admin place drain {name}` empties it"
            )));
        }
        self.accounts.remove_place(name)?;
        self.log(&format!("the place {name} was removed"));
        Ok(Places { places, waiting })
    }

    fn named_place(&self, name: &str) -> Result<Places, ServerError> {
        let mut places = self.places()?;
        places.places.retain(|place| place.name == name);
        match places.places.is_empty() {
            true => Err(ServerError::refused(format!(
                "there is no place {name:?}; `holdall admin place list` shows them"
            ))),
            false => Ok(places),
        }
    }

    /// Moves packs to their places in all repositories that are open, and out of places that are to be emptied in all.
    pub(crate) fn settle_open(&self) {
        let places = self.accounts.places().unwrap_or_default();
        if places.is_empty() {
            return;
        }
        let draining: Vec<_> = places.iter().filter(|place| place.is_draining).collect();
        let has_some =
            |name: &String| draining.iter().any(|place| self.stores.has_packs_in(name, &place.id));
        let mut names = self.stores.open_names();
        names.extend(self.stores.stored_names().unwrap_or_default().into_iter().filter(has_some));
        names.sort_unstable();
        names.dedup();
        for name in names {
            self.settle(&name);
        }
    }

    /// Whether all packs of a repository are where they should be; what keeps them is told once, and listed with the places.
    pub(super) fn settle(&self, name: &str) -> bool {
        let waits = match self.stores.settle(name, self.should_stop) {
            Ok(settled) => {
                if settled.packs > 0 {
                    let (packs, bytes) = (counted(settled.packs, "pack"), size(settled.bytes));
                    self.log(&format!("{name}: {packs}, {bytes}, moved to where they stay"));
                }
                let packs = counted(settled.waiting, "pack");
                settled.why.map(|why| format!("{name}: {packs} cannot be moved: {why}"))
            }
            Err(RepositoryError::Interrupted) => return false,
            Err(error) => Some(format!("{name}: packs cannot be moved: {error}")),
        };
        self.found(waits.as_ref(), name);
        if self.stores.note_waiting(name, waits.clone())
            && let Some(waits) = &waits
        {
            self.log(waits);
        }
        waits.is_none()
    }
}
