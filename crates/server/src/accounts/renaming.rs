//! Other names for machines and repositories.
//!
//! Computers and kits reach a repository by the name that it had when they were paired. So a former name leads to the
//! repository for as long as it is there, and nothing else gets it.

use holdall_protocol::wire::is_repository_name;

use super::entries::MachineEntry;
use super::machine::{InviteRow, Machine};
use super::names::check_machine_name;
use super::tokens::TokenRow;
use super::{Accounts, State};
use crate::ServerError;

impl Accounts {
    /// The name that a repository has now, which may have been renamed.
    pub(crate) fn current_name(&self, repository: &str) -> String {
        let state = self.state();
        state.former.get(repository).map_or(repository, String::as_str).to_owned()
    }

    /// All former names, each with the one that its repository has now.
    pub(crate) fn former_names(&self) -> Vec<(String, String)> {
        self.state().former.clone().into_iter().collect()
    }

    /// Checks that a machine may be called so from now on.
    ///
    /// # Errors
    /// [`ServerError::Refused`].
    pub(crate) fn check_machine_rename(&self, id: &str, new: &str) -> Result<(), ServerError> {
        check_machine_name(new)?;
        let state = self.state();
        match state
            .machines
            .iter()
            .find(|(other, machine)| machine.name == new && other.to_string() != id)
        {
            None => Ok(()),
            Some((other, _)) => Err(ServerError::refused(format!(
                "another machine is called {new:?}: {:.12}",
                other.to_string()
            ))),
        }
    }

    /// Gives the machine of that id another name.
    ///
    /// # Errors
    /// As [`Accounts::check_machine_rename`] and [`Accounts::machine_entry`].
    pub(crate) fn rename_machine(&self, id: &str, new: &str) -> Result<MachineEntry, ServerError> {
        self.check_machine_rename(id, new)?;
        let mut state = self.state();
        let (id, machine) = state.find_machine(id)?;
        let changed = Machine { name: new.to_owned(), ..machine.clone() };
        self.database.change(|changes| changes.put_machine(&id, &changed))?;
        state.replace(id, changed);
        drop(state);
        self.machine_entry(&id.to_string())
    }

    /// Checks that a repository may be called so from now on; whether a folder has that name is not looked at. One that is
    /// nobody's may get the name of a machine's, which was renamed since the accounts were copied.
    ///
    /// # Errors
    /// [`ServerError::Refused`].
    pub(crate) fn check_rename(&self, old: &str, new: &str) -> Result<(), ServerError> {
        let state = self.state();
        match state.former.get(new) {
            Some(current) if current == old && is_repository_name(new) => Ok(()),
            None if state.owner_of(old).is_none() && state.owner_of(new).is_some() => {
                state.check_stays(new)
            }
            _ => state.check_repository(new),
        }
    }

    /// Gives a repository another name in all that is said of it, together.
    ///
    /// # Errors
    /// If it cannot be made durable; then nothing changes.
    pub(crate) fn rename_repository(&self, old: &str, new: &str) -> Result<(), ServerError> {
        let watched = self.retention_watch(old)?;
        let mut state = self.state();
        let is_old = |name: &str| name == old;
        let machines = state.machines.iter().filter(|(_, one)| is_old(&one.repository));
        let invites =
            state.invites.iter().filter(|(_, one)| one.repository.as_deref().is_some_and(is_old));
        let tokens = state.tokens.iter().filter(|(_, one)| is_old(&one.repository));
        let deletions = state.deletions.iter().filter(|(_, one)| is_old(&one.repository));
        let former = state.former.iter().filter(|(_, current)| is_old(current));
        let repository = || new.to_owned();
        self.database.change(|changes| {
            for (id, row) in machines {
                let renamed = Machine { repository: repository(), ..row.clone() };
                changes.put_machine(id, &renamed)?;
            }
            for (hash, row) in invites {
                let renamed = InviteRow { repository: Some(repository()), ..row.clone() };
                changes.put_invite(hash, &renamed)?;
            }
            for (hash, row) in tokens {
                changes.put_token(hash, &TokenRow { repository: repository(), ..row.clone() })?;
            }
            for (number, row) in deletions {
                let mut renamed = row.clone();
                renamed.repository = repository();
                changes.put_deletion(*number, &renamed)?;
            }
            state.readers_of(old).try_for_each(|key| changes.put_reader(&key, new))?;
            changes.put_quota(new, state.quotas.get(old).or(state.quotas.get(new)).copied())?;
            changes.put_quota(old, None)?;
            if let Some(row) = state.keeping.get(old) {
                changes.put_keeping(new, row)?;
                changes.drop_keeping(old)?;
            }
            former.map(|(name, _)| name).try_for_each(|name| changes.put_former(name, new))?;
            changes.put_former(old, new)?;
            changes.drop_former(new)?;
            changes.put_setting(&Self::watch_setting(new), &Self::watch_row(&watched))?;
            changes.drop_setting(&Self::watch_setting(old))
        })?;
        self.load_anew(&mut state)
    }

    /// Has what is known in memory be what is on the disk.
    pub(super) fn load_anew(&self, state: &mut State) -> Result<(), ServerError> {
        *state = self.database.load()?;
        state.derive_roles();
        Ok(())
    }
}
