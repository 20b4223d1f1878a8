//! Giving a machine back what the accounts lost.
//!
//! A server that lost its accounts knows of its machines only what lies in the repositories: records,
//! each signed by the key of the machine that made it. Whoever signs in with the key that signed a
//! machine's newest record is that machine, and its chain goes on; nobody else gets its id.

use holdall_format::{MachineId, PublicKey};
use holdall_protocol::FormerAccount;

use super::invite::secret_hash;
use super::machine::{InviteRow, Machine, MachineKey};
use super::{Accounts, State};
use crate::ServerError;
use crate::auth::rights::{Right, Role};

impl Accounts {
    /// Whether what the machine says that it had would count, if it were proven: only behind an
    /// invite that is good and made for nobody else, and for a key that is not known.
    ///
    /// # Errors
    /// [`ServerError::Refused`] for an invite that is not good.
    pub(crate) fn wants_proof(
        &self,
        secret: &[u8; 16],
        key: PublicKey,
    ) -> Result<bool, ServerError> {
        let state = self.state();
        let invite = state.usable_invite(&secret_hash(secret), key, self.now_ns())?;
        let is_open = invite.used.is_none() && invite.for_machine.is_none();
        Ok(is_open && !state.roles.contains_key(&key))
    }

    /// Whether the same counts for a key that is known: one of a machine that was paired as a new one before it said what
    /// it had.
    pub(crate) fn may_go_back(&self, key: PublicKey, former: &FormerAccount) -> bool {
        let state = self.state();
        matches!(state.roles.get(&key), Some(Role::Machine { machine, .. }) if *machine != former.machine)
    }
}

impl State {
    /// The machine that a key leaves for another: as it will be, without that key.
    pub(super) fn left_behind(
        &self,
        new: &MachineId,
        key: PublicKey,
    ) -> Option<(MachineId, Machine)> {
        let has_key = |machine: &Machine| machine.keys.iter().any(|known| known.public() == key);
        let (id, machine) = self.machines.iter().find(|(id, one)| *id != new && has_key(one))?;
        let mut machine = machine.clone();
        machine.keys.retain(|known| known.public() != key);
        Some((*id, machine))
    }

    /// The account of a machine whose records prove that the key is its own.
    pub(super) fn restored(
        &self,
        invite: &InviteRow,
        former: &FormerAccount,
        fresh: MachineKey,
        wanted_name: &str,
    ) -> Result<(MachineId, Machine), ServerError> {
        let FormerAccount { machine: id, repository } = former;
        if invite.repository.as_ref().is_some_and(|named| named != repository) {
            return Err(ServerError::refused(format!(
                "this invite is for another repository than {repository}, which this computer had"
            )));
        }
        if let Some(known) = self.machines.get(id) {
            return Err(ServerError::refused(format!(
                "this computer was the machine {0} here, which has another key now; an invite for \
                 {0} gives it to this computer",
                known.name
            )));
        }
        self.check_repository(repository)?;
        let chosen = (!wanted_name.is_empty()).then_some(wanted_name).or(invite.name.as_deref());
        let name = self.free_name(chosen.unwrap_or(repository))?;
        let created_ns = fresh.added_ns;
        let repository = repository.clone();
        let right = Right::default();
        Ok((*id, Machine { name, repository, created_ns, right, keys: vec![fresh] }))
    }
}
