//! Renaming and removing machines and repositories.
//!
//! Whoever breaks in as an administrator shall not take backups away at once. So a machine is locked out at once, and
//! what it stored goes as late as anything that was asked to be deleted.

use std::collections::BTreeSet;

use super::administration::Administration;
use super::commands::Only;
use super::entries::{PrunedEntry, Renamed};
use crate::ServerError;
use crate::accounts::{Deletion, MachineEntry, Removal};

/// What a name means: a machine, a repository, or a machine and its repository.
struct Meant {
    machine: Option<MachineEntry>,
    repository: Option<String>,
}

impl Administration<'_> {
    /// Gives a machine, a repository, or both another name.
    pub(super) fn rename(
        &self,
        name: &str,
        new: &str,
        only: Option<Only>,
    ) -> Result<Renamed, ServerError> {
        let Meant { machine, repository } = self.meant(name, only)?;
        if let Some(machine) = &machine {
            self.accounts.check_machine_rename(&machine.id, new)?;
        }
        if let Some(repository) = &repository {
            self.stores.rename(repository, new).map_err(|error| match (&machine, error) {
                (Some(_), ServerError::Refused { reason }) => {
                    ServerError::refused(format!("{reason}; --machine renames the machine alone"))
                }
                (_, error) => error,
            })?;
            self.log(&format!("renamed repository {repository} to {new}"));
        }
        let machine = machine.map(|machine| self.accounts.rename_machine(&machine.id, new));
        let machine = machine.transpose()?;
        if let Some(machine) = &machine {
            self.log(&format!("renamed machine {name} ({:.12}) to {new}", machine.id));
        }
        Ok(Renamed { machine, repository: repository.map(|_| self.entry(new)) })
    }

    /// Locks a machine out and asks for its repository to be deleted with it, or asks for that of a repository.
    pub(super) fn remove(&self, name: &str, only: Option<Only>) -> Result<Deletion, ServerError> {
        let Meant { machine, repository } = self.meant(name, only)?;
        let name = match (&machine, repository) {
            (Some(machine), _) => {
                self.revoke(&machine.id)?;
                machine.repository.clone()
            }
            (None, repository) => repository.unwrap_or_default(),
        };
        let removal = Removal { machine: machine.as_ref().map(|machine| machine.id.clone()) };
        // One that cannot be opened is removed all the same.
        let there = self.stores.store(&name).map(|store| self.judge(&store, &name));
        let ids = there.unwrap_or_default().iter().map(|one| one.id.to_string()).collect();
        let deletion = self.accounts.ask_deletion(&name, ids, None, Some(removal))?;
        let with =
            machine.map_or_else(String::new, |machine| format!(" with machine {}", machine.name));
        self.log(&format!(
            "deletion {} was requested: repository {name} as a whole{with}",
            deletion.number
        ));
        Ok(deletion)
    }

    /// Repositories that are stored, and those that are to be removed.
    pub(super) fn looked_after(&self) -> Result<Vec<String>, ServerError> {
        let mut names: BTreeSet<_> = self.stores.stored_names()?.into_iter().collect();
        let removed = self.accounts.deletions().into_iter().filter(|one| one.removes.is_some());
        names.extend(removed.map(|one| one.repository));
        Ok(names.into_iter().collect())
    }

    /// Removes a repository if that was asked for and its delay is over, and tells whether it did, or would.
    pub(super) fn remove_due(
        &self,
        name: &str,
        dry_run: bool,
        entry: &mut PrunedEntry,
    ) -> Result<bool, ServerError> {
        let asking = self.accounts.asking(name);
        // Until it is carried out it can be cancelled, and is not carried out then.
        let _asking = asking.hold();
        let is_due = |one: &Deletion| {
            let delay_ns = one.due_ns.saturating_sub(one.asked_ns);
            one.repository == name
                && one.removes.is_some()
                && self.accounts.has_passed(one.asked_ns, delay_ns)
        };
        let Some(due) = self.accounts.deletions().into_iter().find(is_due) else {
            return Ok(false);
        };
        if !self.accounts.watch_clock()?.is_believed() {
            return Ok(false);
        }
        if !dry_run {
            self.stores.remove(name, || self.accounts.forget_removed(&due))?;
        }
        entry.removed = true;
        Ok(true)
    }

    /// What is meant by a name.
    fn meant(&self, name: &str, only: Option<Only>) -> Result<Meant, ServerError> {
        let is_repository = only != Some(Only::Machine) && self.names()?.contains(name);
        let is_called = |one: &MachineEntry| one.name == name || one.id == name;
        let machine = match only {
            Some(Only::Repository) => None,
            Some(Only::Machine) => Some(self.accounts.machine_entry(name)?),
            None if self.accounts.machines().iter().any(is_called) => {
                Some(self.accounts.machine_entry(name)?)
            }
            None if !is_repository => self.accounts.machine_entry(name).ok(),
            None => None,
        };
        match (machine, is_repository) {
            (Some(machine), true) if machine.repository != name => {
                Err(ServerError::refused(format!(
                    "{name} is a machine, and the repository of another one: say --machine or --repository"
                )))
            }
            (None, false) => Err(ServerError::refused(format!(
                "no machine and no repository is called {name:?}; `holdall admin machines` and `holdall admin \
                 repositories` list them"
            ))),
            (machine, true) => Ok(Meant { machine, repository: Some(name.to_owned()) }),
            (machine, false) => Ok(Meant { machine, repository: None }),
        }
    }
}
