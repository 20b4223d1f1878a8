//! What an administrator asks, and what is answered, as lines of JSON.

use holdall_format::{RecordHash, TagToken};
use holdall_protocol::PruneReport;
use holdall_repository::retention::Policy;
use holdall_repository::{Judged, Supersession};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

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
    Keeping {
        repository: String,
        /// What it is to be from now on; none to be told.
        #[serde(default)]
        wanted: Option<Keeping>,
    },
    Forget {
        repository: String,
        snapshots: Vec<String>,
    },
    Pending,
    Token {
        repository: String,
    },
    Cancel {
        number: u64,
    },
    Resume {
        repository: String,
    },
    Thin {
        repository: String,
        confirmed: bool,
    },
    Prune {
        /// None for all of them.
        #[serde(default)]
        repository: Option<String>,
        dry_run: bool,
    },
    Scrub {
        /// None for all of them.
        #[serde(default)]
        repository: Option<String>,
        #[serde(default)]
        also: AlsoMend,
    },
}

/// What is to be done beside reading everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AlsoMend {
    /// Mend what is damaged.
    pub repair: bool,
    /// Say only what could be mended.
    pub dry_run: bool,
    /// Keep so many per cent of each pack as parity from now on.
    pub parity: Option<u8>,
}

impl Command {
    /// Whether it is carried out without looking into any repository, so that it waits for nobody.
    pub(super) fn is_quick(&self) -> bool {
        match self {
            Self::Invite(_)
            | Self::Machines
            | Self::Rights { .. }
            | Self::Revoke { .. }
            | Self::Pending
            | Self::Resume { .. } => true,
            // It waits for a deletion that is being carried out.
            Self::Cancel { .. } => false,
            Self::Quota { .. }
            | Self::Repositories
            | Self::Token { .. }
            | Self::Keeping { .. }
            | Self::Forget { .. }
            | Self::Thin { .. }
            | Self::Prune { .. }
            | Self::Scrub { .. } => false,
        }
    }

    /// Whether it may take as long as reading everything does.
    pub(super) fn is_long(&self) -> bool {
        matches!(self, Self::Prune { .. } | Self::Scrub { .. })
    }
}

/// What is answered if the command was carried out.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "lowercase")]
pub(super) enum Reply {
    Invite { invite: Zeroizing<String>, expires_ns: i64 },
    Machines { machines: Vec<MachineEntry> },
    Machine(MachineEntry),
    Repositories { repositories: Vec<RepositoryEntry> },
    Repository(RepositoryEntry),
    Keeping(KeepingEntry),
    Deletions { deletions: Vec<Deletion> },
    Token { token: Zeroizing<String>, expires_ns: i64 },
    Pruned { pruned: Vec<PrunedEntry> },
    Thinning(Thinning),
    Resumed { alarm: Option<String> },
    Scrubbed { scrubbed: Vec<ScrubbedEntry> },
}

/// What is kept of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keeping {
    /// The rules.
    pub policy: Policy,
    /// What has one of these tags is kept whatever the rules say. A server knows tags by their tokens
    /// only.
    #[serde(default, with = "super::tokens")]
    pub tags: Vec<TagToken>,
    /// How long a deletion that was asked for waits, in nanoseconds.
    pub delay_ns: i64,
}

impl Keeping {
    /// As long as nobody says otherwise: a deletion waits for a week.
    pub const USUAL: Self =
        Self { policy: Policy::USUAL, tags: Vec::new(), delay_ns: 7 * 24 * 3600 * 1_000_000_000 };

    /// What keeps all that either of both keeps, for as long as either does.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let mut tags = other.tags.clone();
        tags.extend(self.tags.iter().filter(|tag| !other.tags.contains(tag)));
        let delay_ns = self.delay_ns.max(other.delay_ns);
        Self { policy: self.policy.and(other.policy), tags, delay_ns }
    }
}

/// What is kept of a repository now, and what is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeepingEntry {
    /// Its name on this server.
    pub repository: String,
    /// What is in force.
    pub now: Keeping,
    /// What comes into force, and when, in nanoseconds since 1970 UTC.
    pub then: Option<(Keeping, i64)>,
}

/// Snapshots or superseded blocks that are to be deleted. Times are in nanoseconds since 1970 UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deletion {
    /// What it is called.
    pub number: u64,
    /// The repository's name on this server.
    pub repository: String,
    /// The ids of the snapshots, in hexadecimal.
    pub snapshots: Vec<String>,
    /// The blocks that gave way to later copies of what is needed of them.
    #[serde(default)]
    pub superseded: Option<Supersession>,
    /// When it was asked for.
    pub asked_ns: i64,
    /// When it is carried out, if nobody cancels it.
    pub due_ns: i64,
}

/// A snapshot, as its keeper sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotEntry {
    /// Its id, in hexadecimal.
    pub id: String,
    /// When it was received, in nanoseconds since 1970 UTC.
    pub received_ns: i64,
    /// Of a copy: when its machine says that the original was received.
    #[serde(default)]
    pub taken_ns: Option<i64>,
}

impl SnapshotEntry {
    pub(super) fn of(judged: &Judged) -> Self {
        let Judged { received_ns, taken_ns, .. } = *judged;
        Self { id: judged.id.to_string(), received_ns, taken_ns }
    }
}

/// What could go of a repository that is full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thinning {
    /// The snapshots that could go.
    pub snapshots: Vec<SnapshotEntry>,
    /// How many would stay.
    pub kept: u64,
    /// The deletion that was asked for.
    pub deletion: Option<Deletion>,
}

/// What a prune of a repository did, or would do. Times are in nanoseconds since 1970 UTC.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PrunedEntry {
    /// Its name on this server.
    pub repository: String,
    /// Whether it was only looked at.
    pub dry_run: bool,
    /// The snapshots that were forgotten, or would be.
    pub forgotten: Vec<SnapshotEntry>,
    /// How many the rules keep.
    pub snapshots_kept: u64,
    /// Bytes of packs, tails and records before.
    pub stored_before_bytes: u64,
    /// And afterwards; where it was only looked at, once what would be condemned is deleted, too.
    pub stored_after_bytes: u64,
    /// Packs deleted.
    pub deleted_packs: u64,
    /// Packs condemned now.
    pub condemned_packs: u64,
    /// Packs that are condemned and not deleted yet.
    pub waiting_packs: u64,
    /// Length of their files.
    pub waiting_bytes: u64,
    /// When the first of those may be deleted.
    pub next_due_ns: Option<i64>,
    /// Nothing is deleted before that, since the clock was set, or the server was off for long.
    pub frozen_until_ns: Option<i64>,
    /// Why rules let nothing go, until an administrator says that it is all right.
    #[serde(default)]
    pub alarm: Option<String>,
    /// Why nothing more was done.
    pub problem: Option<String>,
}

impl PrunedEntry {
    pub(super) fn add(&mut self, report: &PruneReport) {
        self.stored_before_bytes = report.stored_before_bytes;
        self.stored_after_bytes = report.stored_after_bytes;
        self.deleted_packs = report.deleted_packs;
        self.condemned_packs = report.condemned_packs;
        self.waiting_packs = report.waiting_packs;
        self.waiting_bytes = report.waiting_bytes;
        self.next_due_ns = report.next_due_ns;
    }

    /// The ids of the snapshots that were forgotten.
    pub(super) fn forgotten_ids(&self) -> Vec<RecordHash> {
        self.forgotten.iter().filter_map(|one| one.id.parse().ok()).collect()
    }

    /// A line for the log.
    pub(super) fn line(&self) -> String {
        let name = &self.repository;
        if let Some(problem) = &self.problem {
            return format!("prune of {name}: {problem}");
        }
        if self.frozen_until_ns.is_some() {
            return format!(
                "prune of {name}: waits, since the clock was set or this was off for long"
            );
        }
        let alarm = match &self.alarm {
            Some(alarm) => {
                format!("rules let nothing go until `holdall admin resume {name}`: {alarm}; ")
            }
            None => String::new(),
        };
        format!(
            "prune of {name}: {alarm}{} snapshots forgotten, {} packs deleted, {} wait",
            self.forgotten.len(),
            self.deleted_packs,
            self.waiting_packs
        )
    }
}

/// What a scrub of a repository read and found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ScrubbedEntry {
    /// Its name on this server.
    pub repository: String,
    /// Packs read, tails counted as one each.
    pub packs: u64,
    /// Blocks read.
    pub blocks: u64,
    /// Objects in them.
    pub objects: u64,
    /// Snapshots whose closure was walked.
    pub snapshots: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Everything that is wrong, in words; what was mended is not any more.
    pub damaged: Vec<String>,
    /// What was mended, or could be, in words.
    #[serde(default)]
    pub repaired: Vec<String>,
    /// Where damaged files were put instead of being deleted.
    #[serde(default)]
    pub quarantined: Vec<String>,
    /// Packs whose parity was made now.
    #[serde(default)]
    pub parity_made: u64,
    /// Why it could not be read at all.
    pub problem: Option<String>,
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
    /// By when everything will have been read again, in the same unit.
    #[serde(default)]
    pub read_by_ns: Option<i64>,
    /// Everything that was stored then was read since, in the same unit.
    #[serde(default)]
    pub read_since_ns: Option<i64>,
    /// What was found damaged by that, in words.
    #[serde(default)]
    pub damaged: Vec<String>,
    /// Why rules let nothing go, until an administrator says that it is all right.
    #[serde(default)]
    pub alarm: Option<String>,
    /// Why it can not be opened.
    pub problem: Option<String>,
}
