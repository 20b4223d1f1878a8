//! Packs on their way from the data folder to the storage places, in all repositories.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use holdall_protocol::RepositoryError;
use holdall_repository::{PackPlace, Settled, Store, clear_places, packs_in_place};

use super::{Slot, Stores};
use crate::ServerError;

impl Stores {
    /// Where packs may lie beside the data folder.
    pub(super) fn pack_places(&self) -> Result<Vec<PackPlace>, ServerError> {
        Ok(self.accounts.places()?.iter().map(PackPlace::from).collect())
    }

    /// Tells a repository where its packs may lie. Where that fails, they stay where they are.
    pub(super) fn tell_places(&self, store: &Store, name: &str) {
        let told = self.pack_places().map_err(|error| error.to_string());
        let told =
            told.and_then(|places| store.set_places(&places).map_err(|error| error.to_string()));
        if let Err(error) = told {
            (self.log)(&format!("the storage places of {name}: {error}"));
        }
    }

    /// The repositories that are open now, by name.
    pub(crate) fn open_names(&self) -> Vec<String> {
        let all = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let slots: Vec<_> =
            all.iter().map(|(name, slot)| (name.clone(), Arc::clone(slot))).collect();
        drop(all);
        // One that is being opened or made has its turn the next time.
        let is_open = |slot: &Mutex<Slot>| slot.try_lock().is_ok_and(|slot| slot.store.is_some());
        slots.into_iter().filter(|(_, slot)| is_open(slot)).map(|(name, _)| name).collect()
    }

    /// Moves what is to lie elsewhere.
    ///
    /// # Errors
    /// As [`Stores::store`] and [`Store::settle`].
    pub(crate) fn settle(
        &self,
        name: &str,
        should_stop: &AtomicBool,
    ) -> Result<Settled, RepositoryError> {
        let store = self.store(name)?;
        self.tell_places(&store, name);
        store.settle(should_stop)
    }

    /// Whether a repository has packs in a place.
    pub(crate) fn has_packs_in(&self, name: &str, id: &str) -> bool {
        packs_in_place(&self.folder.repository(name), id).is_ok_and(|packs| packs > 0)
    }

    /// Notes what keeps packs of a repository from being moved; whether that is something else than before.
    pub(crate) fn note_waiting(&self, name: &str, why: Option<String>) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        match why {
            Some(why) => waiting.insert(name.to_owned(), why.clone()) != Some(why),
            None => waiting.remove(name).is_some(),
        }
    }

    /// All of that.
    pub(crate) fn waiting(&self) -> Vec<String> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.values().cloned().collect()
    }

    /// How many packs lie in a place.
    ///
    /// # Errors
    /// If a repository's folder cannot be read.
    pub(crate) fn packs_in_place(&self, id: &str) -> Result<usize, ServerError> {
        let mut packs = 0;
        for name in self.stored_names()? {
            packs += packs_in_place(&self.folder.repository(&name), id)?;
        }
        Ok(packs)
    }

    /// Deletes a repository that was taken away, in its places too. What it has in those that are away stays there, and is told.
    pub(super) fn delete_set_aside(&self, name: &str) -> Result<(), ServerError> {
        match clear_places(&self.folder.set_aside_at(name)) {
            Ok(left) => left.iter().for_each(|place| {
                let shown = place.folder.display();
                let why = "its disk is not there, or another copy of the repository uses it";
                (self.log)(&format!("what {name} had in {shown} stays there: {why}"));
            }),
            // No reason to keep a server from starting.
            Err(error) => (self.log)(&format!("what {name} had in storage places stays: {error}")),
        }
        self.folder.delete_set_aside(name)
    }
}
