//! What an administrator is answered of repositories.

use crate::activity::SessionEntry;
use crate::auth::scope::Scope;
use crate::jobs::JobEntry;
use holdall_format::RecordHash;
use holdall_lab::report::Report;
use holdall_protocol::{AdminToken, PruneReport};
use holdall_repository::{Judged, Listed};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::accounts::{
    ApiToken, AuditEntry, BandwidthRule, ChannelEntry, Deletion, Going, InviteEntry, KeepingEntry,
    MachineEntry, RunEntry,
};

/// Storage places.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct Places {
    /// In the order in which they were added.
    pub places: Vec<PlaceEntry>,
    /// What keeps packs from being moved, a sentence for each repository where something does.
    pub waiting: Vec<String>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct PlaceEntry {
    /// What it is called.
    pub name: String,
    /// Its folder.
    pub folder: String,
    /// Whether its disk is there.
    pub is_there: bool,
    /// Whether it is being emptied.
    pub is_draining: bool,
    /// How many packs lie in it.
    pub packs: usize,
    /// Room that is left, if the file system tells.
    pub free_bytes: Option<u64>,
    /// All of it.
    pub total_bytes: Option<u64>,
}

/// Limits of what machines send and are sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct BandwidthRules {
    /// By number.
    pub rules: Vec<BandwidthEntry>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct BandwidthEntry {
    /// What it is called.
    pub number: u64,
    /// When it counts, and what it is.
    #[serde(flatten)]
    pub rule: BandwidthRule,
}

/// What the repositories lie on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct Storage {
    /// Their folder.
    pub folder: String,
    /// The mount, the file system, what lies below it, and the disks.
    pub facts: Vec<StorageFact>,
    /// What is to be known of it, a sentence each.
    pub notes: Vec<String>,
    /// The size of the file system, if it tells.
    pub total_bytes: Option<u64>,
    /// What is left of it.
    pub free_bytes: Option<u64>,
    /// By so much more is used each day; `None` while too little is known.
    pub bytes_per_day: Option<f64>,
    /// When it will be full, if it goes on so and that is within ten years; in nanoseconds since 1970 UTC.
    pub full_ns: Option<i64>,
    /// What all repositories take.
    pub stored_bytes: u64,
    /// Their quotas together, of those that have one.
    pub quota_bytes: u64,
    /// Each of them, by name.
    pub repositories: Vec<RepositoryEntry>,
}

/// Something that is known of a disk, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct StorageFact {
    /// What it is about, such as `file system`.
    pub name: String,
    /// What it is.
    pub value: String,
}

/// What was measured of this server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct LabReports {
    /// The oldest first.
    pub reports: Vec<LabEntry>,
}

/// A report of the server's lab in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct LabEntry {
    /// What it is called.
    pub number: u64,
    /// What was measured, as a command.
    pub command: String,
    /// When, in RFC 3339.
    pub made: String,
}

/// A report of the server's lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct LabReport {
    /// What it is called.
    pub number: u64,
    /// All of it, as `holdall lab` writes it.
    #[cfg_attr(feature = "web", schema(value_type = Object))]
    pub report: Report,
}

/// Two reports beside each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct LabComparison {
    /// As `holdall lab compare` has it: `differences`, `only_first`, `only_second`, `circumstances`.
    pub comparison: serde_json::Value,
}

/// All machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct Machines {
    /// By name.
    pub machines: Vec<MachineEntry>,
}

/// What a machine told of its runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct Runs {
    /// Oldest first.
    pub runs: Vec<RunEntry>,
}

/// All repositories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct Repositories {
    /// By name.
    pub repositories: Vec<RepositoryEntry>,
}

/// Deletions that wait, or do not any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct Deletions {
    /// In the order in which they were asked for.
    pub deletions: Vec<Deletion>,
}

/// What is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct Keepings {
    /// By default, then of each repository, by name.
    pub keepings: Vec<KeepingEntry>,
}

/// What got another name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct Renamed {
    /// The machine, if it did.
    pub machine: Option<MachineEntry>,
    /// The repository, if it did.
    pub repository: Option<RepositoryEntry>,
}

/// What prunes did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct Pruned {
    /// By repository.
    pub pruned: Vec<PrunedEntry>,
}

/// What scrubs read and found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct Scrubbed {
    /// By repository.
    pub scrubbed: Vec<ScrubbedEntry>,
}

/// An alarm that was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct Resumed {
    /// Why rules let nothing go; nothing if there was no alarm.
    pub alarm: Option<String>,
}

/// A token that was made.
///
/// Secret: no `Debug`.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct IssuedToken {
    /// What to hand over.
    #[serde(with = "token_text")]
    #[cfg_attr(feature = "web", schema(value_type = String))]
    pub token: AdminToken,
    /// When it lapses, in nanoseconds since 1970 UTC.
    pub expires_ns: i64,
}

/// A code by which somebody becomes an administrator in a browser.
///
/// Secret: no `Debug`.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct IssuedWebCode {
    /// What to type in.
    #[cfg_attr(feature = "web", schema(value_type = String))]
    pub code: Zeroizing<String>,
    /// When it lapses, in nanoseconds since 1970 UTC.
    pub expires_ns: i64,
    /// `HOST:PORT` each, the likeliest first.
    pub addresses: Vec<String>,
}

/// A code by which a machine is let in, in the place of an invite.
///
/// Secret: no `Debug`.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct IssuedShortCode {
    /// What to type in: nine digits in three groups.
    #[cfg_attr(feature = "web", schema(value_type = String))]
    pub code: Zeroizing<String>,
    /// When it lapses, in nanoseconds since 1970 UTC.
    pub expires_ns: i64,
    /// `HOST:PORT` each, the likeliest first.
    pub addresses: Vec<String>,
}

/// A token for programs.
///
/// Secret: no `Debug`.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct IssuedApiToken {
    /// What to hand over.
    #[cfg_attr(feature = "web", schema(value_type = String))]
    pub token: Zeroizing<String>,
    /// Where pages can be reached, `HOST:PORT` each, the likeliest first.
    pub addresses: Vec<String>,
}

/// Tokens for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct ApiTokens {
    /// By name.
    pub tokens: Vec<ApiToken>,
}

/// Invites that are open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct Invites {
    /// The oldest first.
    pub invites: Vec<InviteEntry>,
}

/// Who signs in by a browser, or looks on there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct People {
    /// First those who sign in, then those who look on, each by name.
    pub people: Vec<PersonEntry>,
}

/// Somebody who signs in by a browser, or looks on there. Times are in nanoseconds since 1970 UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct PersonEntry {
    /// What they are called; of who looks on, what the token is called.
    pub name: String,
    /// What they may have done; `look` for who looks on.
    pub scope: Scope,
    /// Whether signing in asks for a code beside the password.
    pub second_factor: bool,
    /// Since when they may: when the password was chosen, or the token made.
    pub made_ns: i64,
    /// When they signed in last; `None` for never, and for who looks on.
    pub signed_in_ns: Option<i64>,
    /// Sessions that are open now.
    pub sessions: usize,
}

/// What rules say of the snapshots of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct Judgement {
    /// Oldest first.
    pub snapshots: Vec<JudgedEntry>,
}

/// A snapshot, and why it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct JudgedEntry {
    /// Which.
    pub snapshot: SnapshotEntry,
    /// By which rules, such as `daily`; by none if it is let go.
    pub reasons: Vec<String>,
}

/// Sessions in which machines store or read now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct Sessions {
    /// The oldest first.
    pub sessions: Vec<SessionEntry>,
}

/// Ways to tell somebody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct Channels {
    /// By name.
    pub channels: Vec<ChannelEntry>,
}

/// Jobs of the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct JobList {
    /// The newest first.
    pub jobs: Vec<JobEntry>,
}

/// A part of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct Audit {
    /// The newest first.
    pub entries: Vec<AuditEntry>,
}

/// All snapshots of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct Snapshots {
    /// Oldest first.
    pub snapshots: Vec<SnapshotEntry>,
}

/// A token as the text to hand over.
mod token_text {
    use super::AdminToken;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
    use zeroize::Zeroizing;

    pub(super) fn serialize<S: Serializer>(token: &AdminToken, to: S) -> Result<S::Ok, S::Error> {
        token.to_text().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<AdminToken, D::Error> {
        let text = Zeroizing::<String>::deserialize(from)?;
        AdminToken::from_text(&text).ok_or_else(|| D::Error::custom("it is no token"))
    }
}

/// What is to be done beside reading everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct AlsoRepair {
    /// Repair what is damaged.
    pub repair: bool,
    /// Say only what could be repaired.
    pub dry_run: bool,
    /// Keep so many per cent of each pack as parity from now on.
    #[cfg_attr(feature = "web", schema(maximum = 255))]
    pub parity: Option<u8>,
}

/// A snapshot, as its keeper sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
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

    pub(super) fn listed(listed: &Listed) -> Self {
        let Listed { id, received_ns, taken_ns } = *listed;
        Self { id: id.to_string(), received_ns, taken_ns }
    }
}

/// What could go of a repository that is full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
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
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct PrunedEntry {
    /// Its name on this server.
    pub repository: String,
    /// Whether it was only looked at.
    pub dry_run: bool,
    /// Whether it was removed as a whole, or would be.
    #[serde(default)]
    pub removed: bool,
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
        if self.removed {
            return format!("removed {name}, as requested");
        }
        if self.frozen_until_ns.is_some() {
            return format!(
                "prune of {name}: waits, since the clock was set or this was off for long"
            );
        }
        let alarm = match &self.alarm {
            Some(alarm) => {
                format!(
                    "automatic deletion is paused until `holdall admin resume {name}`: {alarm}; "
                )
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
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
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
    /// Everything that is wrong, in words; what was repaired is not any more.
    pub damaged: Vec<String>,
    /// What was repaired, or could be, in words.
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

impl ScrubbedEntry {
    /// A line for the log.
    pub(super) fn line(&self) -> String {
        let name = &self.repository;
        if let Some(problem) = &self.problem {
            return format!("scrub of {name}: {problem}");
        }
        let read = format!("{} blocks and {} snapshots read", self.blocks, self.snapshots);
        match &self.damaged[..] {
            [] => format!("scrub of {name}: {read}, nothing is damaged"),
            [first, rest @ ..] => {
                let more = if rest.is_empty() {
                    String::new()
                } else {
                    format!(", and {} more", rest.len())
                };
                format!("scrub of {name}: {read}; damaged: {first}{more}")
            }
        }
    }
}

/// How much a repository may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
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

/// A repository, as its administrator sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct RepositoryEntry {
    /// Its name on this server.
    pub name: String,
    /// Its id, in hexadecimal; `None` while it is not made, or cannot be opened.
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
    /// When it is removed.
    #[serde(default)]
    pub going: Option<Going>,
    /// Why it cannot be opened.
    pub problem: Option<String>,
}
