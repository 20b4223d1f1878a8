//! What is stored of a machine and of an invite.

use holdall_format::{MachineId, PublicKey};
use serde::{Deserialize, Serialize};

use crate::rights::Role;

/// A machine's account.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Machine {
    pub(super) name: String,
    pub(super) repository: String,
    pub(super) created_ns: i64,
    /// Its keys, the newest last.
    pub(super) keys: Vec<MachineKey>,
}

/// One of a machine's keys.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct MachineKey {
    public: [u8; 32],
    pub(super) added_ns: i64,
    pub(super) revoked_ns: Option<i64>,
}

impl MachineKey {
    pub(super) fn new(public: PublicKey, added_ns: i64) -> Self {
        Self { public: *public.as_bytes(), added_ns, revoked_ns: None }
    }

    pub(super) fn public(&self) -> PublicKey {
        PublicKey::from_bytes(self.public)
    }
}

impl Machine {
    pub(super) fn role_of(&self, machine: MachineId, key: &MachineKey) -> Role {
        match key.revoked_ns {
            Some(_) => Role::Revoked,
            None => Role::Machine { machine, repository: self.repository.clone() },
        }
    }
}

/// An invite that was handed out. The secret itself is not kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct InviteRow {
    pub(super) created_ns: i64,
    /// The new machine's name, if the administrator chose it.
    pub(super) name: Option<String>,
    /// Its repository, if the administrator chose it.
    pub(super) repository: Option<String>,
    /// The machine that gets a new key.
    pub(super) for_machine: Option<[u8; 16]>,
    /// The key that used it, and the machine that this key became.
    pub(super) used: Option<([u8; 32], [u8; 16])>,
}
