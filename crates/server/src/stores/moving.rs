//! Repositories that get another name, or go.
//!
//! What was said of a repository changes in the database first, and its folder's name after that. Where the power is
//! cut between the two, the next start gives the folder its name: no other repository has a former name. One that is
//! removed loses its folder's name first, so that it is deleted whole or not at all.

use std::sync::{Arc, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{Slot, Stores};
use crate::ServerError;

/// How long whoever uses a repository is waited for: requests end by then, a scrub may not.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(10);

impl Stores {
    /// Gives a repository another name, which has to be free. Machines that use it meanwhile notice nothing.
    ///
    /// # Errors
    /// [`ServerError::Refused`] if something has the name, or the repository is in use for long.
    pub(crate) fn rename(&self, old: &str, new: &str) -> Result<(), ServerError> {
        if old == new {
            return Ok(());
        }
        let slots = [self.slot(old), self.slot(new)];
        let [mut from, mut to] =
            slots.each_ref().map(|slot| slot.lock().unwrap_or_else(PoisonError::into_inner));
        self.accounts.check_rename(old, new)?;
        if self.is_stored(new) {
            return Err(ServerError::refused(format!("there is a repository {new} already")));
        }
        close(&mut from, old)?;
        self.accounts.rename_repository(old, new)?;
        if let Err(error) = self.folder.rename_repository(old, new) {
            self.accounts.rename_repository(new, old)?;
            return Err(error);
        }
        to.sessions = from.sessions.take();
        Ok(())
    }

    /// Goes on where renaming and removing were cut short: folders get the names of their repositories. One that was taken
    /// away and not forgotten yet gets its name again, so that its removal can still be cancelled; the others are deleted.
    ///
    /// # Errors
    /// If a folder cannot be renamed or deleted.
    pub(crate) fn finish_moves(&self) -> Result<(), ServerError> {
        self.finish_renames()?;
        for name in self.folder.all_set_aside()? {
            match self.accounts.removal_of_repository(&name).is_some() && !self.is_stored(&name) {
                true => self.folder.put_back_set_aside(&name)?,
                false => self.delete_set_aside(&name)?,
            }
        }
        Ok(())
    }

    fn finish_renames(&self) -> Result<(), ServerError> {
        let former = self.accounts.former_names().into_iter();
        let mut cut_short = former.filter(|(old, new)| self.is_stored(old) && !self.is_stored(new));
        cut_short.try_for_each(|(old, new)| self.folder.rename_repository(&old, &new))
    }

    /// Removes a repository, if there is one, and has it forgotten by `forget`.
    ///
    /// # Errors
    /// [`ServerError::Refused`] if it is in use for long; those of `forget`. Then it is there as before, or gone and not
    /// forgotten yet, so that removing it again goes on.
    pub(crate) fn remove(
        &self,
        name: &str,
        forget: impl FnOnce() -> Result<(), ServerError>,
    ) -> Result<(), ServerError> {
        let slot = self.slot(name);
        let mut open = slot.lock().unwrap_or_else(PoisonError::into_inner);
        close(&mut open, name)?;
        open.sessions = None;
        self.folder.set_aside(name)?;
        forget()?;
        drop(open);
        self.delete_set_aside(name)
    }
}

/// Closes a repository once nobody uses it, and keeps its sessions.
fn close(open: &mut Slot, name: &str) -> Result<(), ServerError> {
    let begun = Instant::now();
    while open.store.as_ref().is_some_and(|store| Arc::strong_count(store) > 1) {
        if begun.elapsed() > PATIENCE {
            let why = format!("{name} is in use, as by a prune or a scrub: try again later");
            return Err(ServerError::refused(why));
        }
        sleep(LOOK_EVERY);
    }
    if let Some(store) = open.store.take() {
        open.sessions = Some(store.shared_sessions());
    }
    Ok(())
}
