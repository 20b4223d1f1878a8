//! What is stored of a machine and of an invite.

use holdall_format::{MachineId, PublicKey};
use serde::{Deserialize, Serialize};

use crate::auth::rights::{Right, Role};

/// A machine's account.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Machine {
    pub(super) name: String,
    pub(super) repository: String,
    pub(super) created_ns: i64,
    /// What it may do; rows of before there was a choice lack it.
    #[serde(default)]
    pub(super) right: Right,
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
            None => {
                let (repository, right) = (self.repository.clone(), self.right);
                Role::Machine { machine, repository, right }
            }
        }
    }

    /// Whether all of its keys are revoked.
    pub(super) fn is_locked_out(&self) -> bool {
        self.keys.iter().all(|key| key.revoked_ns.is_some())
    }

    /// Revokes the keys that are in use.
    pub(super) fn revoke_keys(&mut self, now_ns: i64) {
        let in_use = self.keys.iter_mut().filter(|key| key.revoked_ns.is_none());
        in_use.for_each(|key| key.revoked_ns = Some(now_ns));
    }
}

/// How long an invite is accepted if nothing else was asked for.
pub(super) const INVITE_LIFE_NS: i64 = 10 * 60 * 1_000_000_000;

/// An invite that was handed out. The secret itself is not kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct InviteRow {
    pub(super) created_ns: i64,
    /// For how long it is accepted; rows of before there was a choice lack it.
    #[serde(default = "invite_life_ns")]
    pub(super) valid_for_ns: i64,
    /// The new machine's name, if the administrator chose it.
    pub(super) name: Option<String>,
    /// Its repository, if the administrator chose it.
    pub(super) repository: Option<String>,
    /// The machine that gets a new key.
    pub(super) for_machine: Option<[u8; 16]>,
    /// The key that used it, and the machine that this key became.
    pub(super) used: Option<([u8; 32], [u8; 16])>,
}

fn invite_life_ns() -> i64 {
    INVITE_LIFE_NS
}
