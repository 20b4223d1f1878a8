//! Machines, their keys, and invites: the server's small state.
//!
//! All of it is kept in memory, because every request asks for a key's role; every change is durable
//! in redb before it is seen. A machine keeps its id, its name and its repository while its keys
//! change; a key that was replaced stays known as revoked.

mod administration;
mod database;
mod invite;
mod machine;
mod names;
mod pairing;
mod seen;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdall_format::{MachineId, PublicKey};
use holdall_repository::Clock;

use crate::ServerError;
use crate::rights::Role;
use database::Database;
use machine::{InviteRow, Machine};
use seen::Seen;

pub use invite::{Invitation, InviteRequest};
#[cfg(test)]
use pairing::Account;

/// The accounts of one server.
pub(crate) struct Accounts {
    database: Database,
    state: Mutex<State>,
    seen: Seen,
    clock: Arc<dyn Clock>,
}

/// What redb holds, in memory.
#[derive(Default)]
struct State {
    machines: HashMap<MachineId, Machine>,
    /// Keys of recovery kits and the repositories that they read.
    readers: HashMap<PublicKey, String>,
    /// By the hash of their secret.
    invites: HashMap<[u8; 32], InviteRow>,
    /// Most bytes of those repositories for which there is a most.
    quotas: HashMap<String, u64>,
    /// Every key and what it is now; follows from the above.
    roles: HashMap<PublicKey, Role>,
}

impl Accounts {
    /// Opens the database, or makes one.
    pub(crate) fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, ServerError> {
        let database = Database::open(path)?;
        let mut state = database.load()?;
        state.derive_roles();
        let seen = Seen::of_noted(database.seen()?.into_iter());
        Ok(Self { database, state: Mutex::new(state), seen, clock })
    }

    /// What a key is.
    pub(crate) fn role(&self, key: &PublicKey) -> Role {
        self.state().roles.get(key).cloned().unwrap_or(Role::Unknown)
    }

    /// Lets a recovery kit's identity read a repository, and tells whether it could not before.
    ///
    /// # Errors
    /// [`ServerError::Refused`] for a key that is something else already.
    pub(crate) fn add_reader(&self, key: PublicKey, repository: &str) -> Result<bool, ServerError> {
        let mut state = self.state();
        match state.roles.get(&key) {
            None => {}
            Some(Role::Reader { repository: known }) if known == repository => return Ok(false),
            Some(_) => return Err(ServerError::refused("the recovery identity is known already")),
        }
        self.database.put_reader(&key, repository)?;
        state.readers.insert(key, repository.to_owned());
        state.derive_roles();
        Ok(true)
    }

    /// Takes a recovery kit's right back, because its repository was not made.
    pub(crate) fn drop_reader(&self, key: &PublicKey) -> Result<(), ServerError> {
        let mut state = self.state();
        self.database.drop_reader(key)?;
        state.readers.remove(key);
        state.derive_roles();
        Ok(())
    }

    /// Remembers where the server listens, for invites that are made while it does not run.
    pub(crate) fn set_listen(&self, address: &str) -> Result<(), ServerError> {
        self.database.put_setting("listen", address)
    }

    /// Where the server listened last.
    pub(crate) fn listen(&self) -> Result<Option<String>, ServerError> {
        self.database.setting("listen")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn derive_roles(&mut self) {
        let readers = self
            .readers
            .iter()
            .map(|(key, repository)| (*key, Role::Reader { repository: repository.clone() }));
        let machines = self.machines.iter().flat_map(|(id, machine)| {
            machine.keys.iter().map(|key| (key.public(), machine.role_of(*id, key)))
        });
        self.roles = readers.chain(machines).collect();
    }

    /// The machine whose repository that is.
    fn owner_of(&self, repository: &str) -> Option<(&MachineId, &Machine)> {
        self.machines.iter().find(|(_, machine)| machine.repository == repository)
    }
}

#[cfg(test)]
mod tests;
