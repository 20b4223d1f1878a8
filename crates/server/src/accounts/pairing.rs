//! Taking an invite: a key becomes a machine, or the new key of one.

use holdall_format::{MachineId, PublicKey};
use holdall_protocol::{Denial, FormerAccount, RepositoryError};

use super::invite::secret_hash;
use super::machine::{InviteRow, Machine, MachineKey};
use super::names::{check_machine_name, numbered, repository_name};
use super::{Accounts, State, lives};
use crate::ServerError;
use crate::auth::identity::random;
use crate::auth::rights::{Right, Role};

/// What a machine is told of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) machine: MachineId,
    pub(crate) name: String,
    pub(crate) repository: String,
}

impl Accounts {
    /// Takes an invite for the key that signed in. The same invite and key again get the same answer,
    /// in case the first was lost on the way. `former` is what the machine had before the accounts
    /// were lost, proven by its records; `is_stored` tells whether a folder of that name lies among
    /// the repositories.
    ///
    /// # Errors
    /// [`ServerError::Refused`] for a secret that is unknown, used by another key or expired, and for
    /// a key that is something else already.
    pub(crate) fn pair(
        &self,
        secret: &[u8; 16],
        key: PublicKey,
        wanted_name: &str,
        former: Option<&FormerAccount>,
        is_stored: impl Fn(&str) -> bool,
    ) -> Result<Account, ServerError> {
        let now = self.now_ns();
        let hash = secret_hash(secret);
        let mut state = self.state();
        let mut invite = state.usable_invite(&hash, key, now)?;
        let (id, machine) = match invite.used {
            Some((_, id)) => return state.account(MachineId::from_bytes(id)),
            None => {
                let fresh = MachineKey::new(key, now);
                state.machine_for(&invite, fresh, wanted_name, former, is_stored)?
            }
        };
        let left = state.left_behind(&id, key);
        invite.used = Some((*key.as_bytes(), *id.as_bytes()));
        self.database.change(|changes| {
            if let Some((id, machine)) = &left {
                changes.put_machine(id, machine)?;
            }
            changes.put_machine(&id, &machine)?;
            changes.put_invite(&hash, &invite)
        })?;
        state.machines.extend(left);
        state.machines.insert(id, machine);
        state.invites.insert(hash, invite);
        state.derive_roles();
        state.account(id)
    }
}

impl State {
    pub(super) fn usable_invite(
        &self,
        hash: &[u8; 32],
        key: PublicKey,
        now: i64,
    ) -> Result<InviteRow, ServerError> {
        let row = self.invites.get(hash);
        let row = row.ok_or_else(|| no_good("this server made no such invite"))?;
        match row.used {
            Some((by, _)) if by == *key.as_bytes() && !self.is_revoked(key) => Ok(row.clone()),
            Some(_) => Err(no_good("this invite was used already")),
            None if !lives(row.created_ns, row.valid_for_ns, now) => {
                Err(no_good("this invite has expired"))
            }
            None => Ok(row.clone()),
        }
    }

    /// What becomes of the key: the machine as it will be.
    fn machine_for(
        &self,
        invite: &InviteRow,
        fresh: MachineKey,
        wanted_name: &str,
        former: Option<&FormerAccount>,
        is_stored: impl Fn(&str) -> bool,
    ) -> Result<(MachineId, Machine), ServerError> {
        let (key, now) = (fresh.public(), fresh.added_ns);
        match self.roles.get(&key) {
            None => {}
            // Proven: it goes back to what it had.
            Some(Role::Machine { machine, .. })
                if former.is_some_and(|former| former.machine != *machine) => {}
            Some(Role::Machine { machine, repository, .. }) => {
                return self.machine_again(*machine, repository, invite);
            }
            Some(Role::Revoked) if self.is_for_machine_of(invite, key) => {}
            Some(Role::Revoked) => {
                let reason =
                    "this key was revoked; only an invite for its own machine lets it in again";
                return Err(RepositoryError::denied(Denial::RevokedKey, reason).into());
            }
            Some(_) => return Err(ServerError::refused("this key may not be paired again")),
        }
        if let Some(id) = invite.for_machine.map(MachineId::from_bytes) {
            let mut machine = self.machine(id)?.clone();
            machine.revoke_keys(now);
            machine.keys.retain(|old| old.public() != key);
            machine.keys.push(fresh);
            return Ok((id, machine));
        }
        if let Some(former) = former {
            return self.restored(invite, former, fresh, wanted_name);
        }
        let mut id = [0; MachineId::LEN];
        random(&mut id)?;
        let id = MachineId::from_bytes(id);
        let chosen = (!wanted_name.is_empty()).then_some(wanted_name).or(invite.name.as_deref());
        let name = chosen.map_or_else(|| format!("machine-{:.8}", id.to_string()), str::to_owned);
        let name = self.free_name(&name)?;
        let taken = |name: &str| {
            self.owner_of(name).is_some() || self.former.contains_key(name) || is_stored(name)
        };
        let repository = invite.repository.clone().unwrap_or_else(|| repository_name(&name, taken));
        self.check_repository(&repository)?;
        let right = Right::default();
        Ok((id, Machine { name, repository, created_ns: now, right, keys: vec![fresh] }))
    }

    /// A machine's name, with a number behind it if another one has it.
    pub(super) fn free_name(&self, wanted: &str) -> Result<String, ServerError> {
        check_machine_name(wanted)?;
        let name = numbered(wanted, |name| self.is_called(name));
        check_machine_name(&name)?;
        Ok(name)
    }

    fn is_revoked(&self, key: PublicKey) -> bool {
        matches!(self.roles.get(&key), Some(Role::Revoked))
    }

    /// Whether an invite was made for the very machine whose key that is, or was.
    fn is_for_machine_of(&self, invite: &InviteRow, key: PublicKey) -> bool {
        let named = invite.for_machine.and_then(|id| self.machines.get(&MachineId::from_bytes(id)));
        named.is_some_and(|machine| machine.keys.iter().any(|known| known.public() == key))
    }

    /// A computer that is paired already keeps what it has.
    fn machine_again(
        &self,
        id: MachineId,
        repository: &str,
        invite: &InviteRow,
    ) -> Result<(MachineId, Machine), ServerError> {
        let machine = self.machine(id)?;
        let meant = invite.repository.as_deref().is_none_or(|named| named == repository)
            && invite.for_machine.is_none_or(|named| named == *id.as_bytes());
        match meant {
            true => Ok((id, machine.clone())),
            false => Err(ServerError::refused(format!(
                "this computer is paired as {} already, with the repository {repository}",
                machine.name
            ))),
        }
    }

    fn machine(&self, id: MachineId) -> Result<&Machine, ServerError> {
        let machine = self.machines.get(&id);
        machine.ok_or_else(|| ServerError::refused("the invite's machine is not known any more"))
    }

    fn account(&self, machine: MachineId) -> Result<Account, ServerError> {
        let Machine { name, repository, .. } = self.machine(machine)?.clone();
        Ok(Account { machine, name, repository })
    }
}

fn no_good(reason: &str) -> ServerError {
    RepositoryError::denied(Denial::Invite, reason).into()
}
