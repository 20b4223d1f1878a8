//! Machines and repositories that are removed: a deletion that waits as any other, and what it takes along.

use std::str::FromStr;

use holdall_format::{MachineId, PublicKey};

use super::entries::{Deletion, Going, Removal};
use super::machine::Machine;
use super::{Accounts, State};
use crate::ServerError;

impl Accounts {
    /// When the machine is removed that has or had a key.
    pub(crate) fn removal_of(&self, key: &PublicKey) -> Option<Going> {
        let state = self.state();
        let (id, _) = state.machine_with(key)?;
        state.removal_of_machine(id)
    }

    /// When a repository is removed.
    pub(crate) fn removal_of_repository(&self, repository: &str) -> Option<Going> {
        self.state().removal_of_repository(repository)
    }

    /// Forgets all that was said of a repository which was removed, and the machine that was to go with it. A machine
    /// that is to go later does so then.
    pub(crate) fn forget_removed(&self, deletion: &Deletion) -> Result<(), ServerError> {
        let name = &deletion.repository;
        let machine = deletion.removes.as_ref().and_then(|removal| removal.machine.as_deref());
        let machine = machine.and_then(|id| MachineId::from_str(id).ok());
        let mut state = self.state();
        let is_void = |one: &&Deletion| {
            let goes_later = one.removes.as_ref().is_some_and(|removal| removal.machine.is_some());
            one.repository == *name && (one.number == deletion.number || !goes_later)
        };
        self.database.change(|changes| {
            let void = state.deletions.values().filter(is_void);
            void.map(|one| one.number).try_for_each(|number| changes.drop_deletion(number))?;
            let tokens = state.tokens.iter().filter(|(_, token)| token.repository == *name);
            tokens.map(|(hash, _)| hash).try_for_each(|hash| changes.drop_token(hash))?;
            // A machine that stays knows its next repository by those, too.
            let goes = state.owner_of(name).is_none_or(|(id, _)| Some(*id) == machine);
            let former = state.former.iter().filter(|(_, current)| goes && *current == name);
            former.map(|(old, _)| old).try_for_each(|old| changes.drop_former(old))?;
            state.readers_of(name).try_for_each(|key| changes.drop_reader(&key))?;
            changes.put_quota(name, None)?;
            changes.drop_keeping(name)?;
            changes.drop_setting(&Self::watch_setting(name))?;
            let Some(id) = machine else { return Ok(()) };
            let invites = state.open_invites_for(id);
            invites.iter().try_for_each(|hash| changes.drop_invite(hash))?;
            changes.drop_machine(&id)
        })?;
        self.load_anew(&mut state)
    }
}

impl State {
    /// The machine that has or had a key.
    pub(super) fn machine_with(&self, key: &PublicKey) -> Option<(&MachineId, &Machine)> {
        let has_key = |machine: &Machine| machine.keys.iter().any(|known| known.public() == *key);
        self.machines.iter().find(|(_, machine)| has_key(machine))
    }

    pub(super) fn removal_of_machine(&self, machine: &MachineId) -> Option<Going> {
        let id = machine.to_string();
        self.going(|_, removal| removal.machine.as_deref() == Some(&id))
    }

    pub(super) fn removal_of_repository(&self, repository: &str) -> Option<Going> {
        self.going(|deletion, _| deletion.repository == repository)
    }

    fn going(&self, is_it: impl Fn(&Deletion, &Removal) -> bool) -> Option<Going> {
        let going = |one: &Deletion| {
            let is_it = one.removes.as_ref().is_some_and(|removal| is_it(one, removal));
            is_it.then_some(Going { number: one.number, due_ns: one.due_ns })
        };
        self.deletions.values().find_map(going)
    }

    /// Refuses to let a machine in for what is to be removed.
    pub(super) fn check_stays(&self, repository: &str) -> Result<(), ServerError> {
        match self.removal_of_repository(repository) {
            None => Ok(()),
            Some(Going { number, .. }) => Err(ServerError::refused(format!(
                "{repository} is to be removed: `holdall admin cancel {number}` takes that back, then make the invite"
            ))),
        }
    }
}
