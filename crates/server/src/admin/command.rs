//! What an administrator asks, and what is answered, as lines of JSON.

use serde::{Deserialize, Serialize};

use crate::accounts::InviteRequest;
use crate::rights::Right;

/// What is asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "lowercase")]
pub(super) enum Command {
    Invite(InviteRequest),
    Machines,
    Rights {
        machine: String,
        /// What it is to be from now on; none to be told.
        #[serde(default)]
        right: Option<Right>,
    },
    Revoke {
        machine: String,
    },
    Quota {
        repository: String,
        /// What it is to be from now on; none to be told.
        #[serde(default)]
        quota: Option<Quota>,
    },
    Repositories,
}

impl Command {
    /// Whether it is carried out without looking into any repository, so that it waits for nobody.
    pub(super) fn is_quick(&self) -> bool {
        match self {
            Self::Invite(_) | Self::Machines | Self::Rights { .. } | Self::Revoke { .. } => true,
            Self::Quota { .. } | Self::Repositories => false,
        }
    }
}

/// What is answered if the command was carried out.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "lowercase")]
pub(super) enum Reply {
    Invite { invite: String, expires_ns: i64 },
    Machines { machines: Vec<MachineEntry> },
    Machine(MachineEntry),
    Repositories { repositories: Vec<RepositoryEntry> },
    Repository(RepositoryEntry),
}

/// How much a repository may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Quota {
    /// So many bytes.
    Bytes(u64),
    /// As many as there is room for.
    None,
}

impl Quota {
    /// The most bytes, if there is a most.
    pub(super) fn bytes(self) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::None => None,
        }
    }
}

/// A machine, as its administrator sees it. Times are in nanoseconds since 1970 UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineEntry {
    /// Its id, in hexadecimal.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Its repository, which may not be made yet.
    pub repository: String,
    /// What it may do there, if it is not revoked.
    pub right: Right,
    /// When it was paired first.
    pub created_ns: i64,
    /// How many of its keys may sign in.
    pub keys: usize,
    /// Whether it is locked out: it was let in, and none of its keys may sign in any more.
    pub revoked: bool,
    /// When it last asked for something, to the minute.
    pub last_seen_ns: Option<i64>,
}

/// A repository, as its administrator sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RepositoryEntry {
    /// Its name on this server.
    pub name: String,
    /// Its id, in hexadecimal; `None` while it is not made, or can not be opened.
    pub id: Option<String>,
    /// The id of the machine that it belongs to.
    pub machine: Option<String>,
    /// That machine's name.
    pub machine_name: Option<String>,
    /// Bytes of packs, tails and records.
    pub stored_bytes: u64,
    /// Packs, tails counted as one each.
    pub packs: u64,
    /// Committed snapshots.
    pub snapshots: u64,
    /// Most bytes that may be stored; `None` for as many as there is room for.
    pub quota_bytes: Option<u64>,
    /// When its newest record came, in nanoseconds since 1970 UTC.
    pub newest_ns: Option<i64>,
    /// Why it can not be opened.
    pub problem: Option<String>,
}
