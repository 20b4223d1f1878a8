//! Storage places: folders on other disks, where packs of all repositories lie.

use std::path::PathBuf;

use holdall_repository::PackPlace;
use serde::{Deserialize, Serialize};

use super::Accounts;
use crate::ServerError;

const SETTING: &str = "places";
/// More are a mistake.
const MOST: usize = 32;
const NAME_MOST: usize = 32;

/// A storage place, as an administrator named it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoragePlace {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) folder: PathBuf,
    pub(crate) is_draining: bool,
}

impl From<&StoragePlace> for PackPlace {
    fn from(place: &StoragePlace) -> Self {
        let StoragePlace { id, folder, is_draining, .. } = place.clone();
        Self { id, folder, is_draining }
    }
}

impl Accounts {
    /// All of them, in the order in which they were added.
    pub(crate) fn places(&self) -> Result<Vec<StoragePlace>, ServerError> {
        self.read_json(SETTING)
    }

    /// Adds one.
    pub(crate) fn add_place(&self, place: StoragePlace) -> Result<(), ServerError> {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        let StoragePlace { name, id, folder, .. } = &place;
        if name.is_empty() || name.len() > NAME_MOST || !name.chars().all(is_plain) {
            let reason =
                format!("a name is 1 to {NAME_MOST} letters, digits, \"-\", \"_\" and \".\"");
            return Err(ServerError::refused(reason));
        }
        let _state = self.state();
        let mut places = self.places()?;
        if places.len() >= MOST {
            return Err(ServerError::refused(format!("there are {MOST} places; remove one")));
        }
        // Its disk may be mounted elsewhere by now.
        if let Some(known) = places.iter_mut().find(|one| one.name == *name && one.id == *id) {
            known.folder.clone_from(folder);
            return self.put_json(SETTING, &places);
        }
        if let Some(same) =
            places.iter().find(|one| one.name == *name || one.id == *id || one.folder == *folder)
        {
            let shown = same.folder.display();
            return Err(ServerError::refused(format!(
                "{shown} is the place {} already",
                same.name
            )));
        }
        places.push(place);
        self.put_json(SETTING, &places)
    }

    /// Has one be emptied from now on.
    pub(crate) fn drain_place(&self, name: &str) -> Result<(), ServerError> {
        let _state = self.state();
        let mut places = self.places()?;
        find(&mut places, name)?.is_draining = true;
        self.put_json(SETTING, &places)
    }

    /// Takes one away.
    pub(crate) fn remove_place(&self, name: &str) -> Result<(), ServerError> {
        let _state = self.state();
        let mut places = self.places()?;
        find(&mut places, name)?;
        places.retain(|place| place.name != name);
        self.put_json(SETTING, &places)
    }
}

fn find<'p>(
    places: &'p mut [StoragePlace],
    name: &str,
) -> Result<&'p mut StoragePlace, ServerError> {
    let none = || {
        ServerError::refused(format!(
            "there is no place {name:?}; `holdall admin place list` shows them"
        ))
    };
    places.iter_mut().find(|place| place.name == name).ok_or_else(none)
}
