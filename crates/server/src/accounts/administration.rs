//! What an administrator sees of machines and repositories, and changes.

use holdall_format::MachineId;

use super::entries::MachineEntry;
use super::machine::{InviteRow, Machine};
use super::{Accounts, State};
use crate::ServerError;
use crate::auth::rights::Right;

impl Accounts {
    /// All machines, by name.
    pub(crate) fn machines(&self) -> Vec<MachineEntry> {
        let state = self.state();
        let mut entries: Vec<_> =
            state.machines.iter().map(|(id, machine)| self.entry(&state, *id, machine)).collect();
        entries.sort_unstable_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
        entries
    }

    /// One machine, by name, id or the beginning of its id.
    ///
    /// # Errors
    /// [`ServerError::Refused`] if none or several answer to that.
    pub(crate) fn machine_entry(&self, wanted: &str) -> Result<MachineEntry, ServerError> {
        let state = self.state();
        let (id, machine) = state.find_machine(wanted)?;
        Ok(self.entry(&state, id, machine))
    }

    /// Changes what a machine may do from its next request on.
    ///
    /// # Errors
    /// As [`Accounts::machine_entry`].
    pub(crate) fn set_right(
        &self,
        wanted: &str,
        right: Right,
    ) -> Result<MachineEntry, ServerError> {
        let mut state = self.state();
        let (id, machine) = state.find_machine(wanted)?;
        if machine.is_locked_out() {
            let name = &machine.name;
            return Err(ServerError::refused(format!(
                "{name} was revoked, and no right lets it in: `holdall invite --for {name}` gives its repository to a new key"
            )));
        }
        let changed = Machine { right, ..machine.clone() };
        self.database.change(|changes| changes.put_machine(&id, &changed))?;
        let entry = self.entry(&state, id, &changed);
        state.replace(id, changed);
        Ok(entry)
    }

    /// Revokes all keys of a machine, and the invites for it that nobody used.
    ///
    /// # Errors
    /// As [`Accounts::machine_entry`].
    pub(crate) fn revoke(&self, wanted: &str) -> Result<MachineEntry, ServerError> {
        let mut state = self.state();
        let (id, machine) = state.find_machine(wanted)?;
        let mut changed = machine.clone();
        changed.revoke_keys(self.now_ns());
        let invites = state.open_invites_for(id);
        self.database.change(|changes| {
            invites.iter().try_for_each(|hash| changes.drop_invite(hash))?;
            changes.put_machine(&id, &changed)
        })?;
        invites.iter().for_each(|hash| drop(state.invites.remove(hash)));
        let entry = self.entry(&state, id, &changed);
        state.replace(id, changed);
        Ok(entry)
    }

    /// The most bytes that a repository may hold, if there is a most.
    pub(crate) fn quota(&self, repository: &str) -> Option<u64> {
        self.state().quotas.get(repository).copied()
    }

    /// Says how many bytes a repository may hold.
    pub(crate) fn set_quota(&self, name: &str, bytes: Option<u64>) -> Result<(), ServerError> {
        let mut state = self.state();
        self.database.change(|changes| changes.put_quota(name, bytes))?;
        match bytes {
            Some(bytes) => drop(state.quotas.insert(name.to_owned(), bytes)),
            None => drop(state.quotas.remove(name)),
        }
        Ok(())
    }

    /// Id and name of the machine whose repository that is.
    pub(crate) fn owner(&self, repository: &str) -> Option<(String, String)> {
        let state = self.state();
        state.owner_of(repository).map(|(id, machine)| (id.to_string(), machine.name.clone()))
    }

    fn entry(&self, state: &State, id: MachineId, machine: &Machine) -> MachineEntry {
        let keys = machine.keys.iter().filter(|key| key.revoked_ns.is_none()).count();
        MachineEntry {
            id: id.to_string(),
            name: machine.name.clone(),
            repository: machine.repository.clone(),
            right: machine.right,
            created_ns: machine.created_ns,
            keys,
            revoked: keys == 0,
            last_seen_ns: self.seen.last_ns(&id),
            going: state.removal_of_machine(&id),
            last_run: self.last_run(&id),
        }
    }
}

impl State {
    /// The machine of that id, or else of that name, or the only one whose id begins so.
    pub(super) fn find_machine(&self, wanted: &str) -> Result<(MachineId, &Machine), ServerError> {
        let begins = |id: &MachineId| !wanted.is_empty() && id.to_string().starts_with(wanted);
        if let Some((id, machine)) = self.machines.iter().find(|(id, _)| id.to_string() == wanted) {
            return Ok((*id, machine));
        }
        let mut called: Vec<_> =
            self.machines.iter().filter(|(_, machine)| machine.name == wanted).collect();
        if called.is_empty() {
            called = self.machines.iter().filter(|(id, _)| begins(id)).collect();
        }
        match called.as_slice() {
            [(id, machine)] => Ok((**id, machine)),
            [] => Err(ServerError::refused(format!(
                "no machine is called {wanted:?}; `holdall admin machines` lists them"
            ))),
            _ => Err(ServerError::refused(format!(
                "several machines are called {wanted:?}; name the one by its id, which `holdall \
                 admin machines` tells"
            ))),
        }
    }

    /// Invites for that machine that nobody used.
    pub(super) fn open_invites_for(&self, id: MachineId) -> Vec<[u8; 32]> {
        let is_for_it = |invite: &InviteRow| {
            invite.used.is_none() && invite.for_machine == Some(*id.as_bytes())
        };
        let open = self.invites.iter().filter(|(_, invite)| is_for_it(invite));
        open.map(|(hash, _)| *hash).collect()
    }

    pub(super) fn replace(&mut self, id: MachineId, machine: Machine) {
        self.machines.insert(id, machine);
        self.derive_roles();
    }
}
