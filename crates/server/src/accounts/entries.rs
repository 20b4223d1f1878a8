//! What an administrator sees of the accounts: machines, what is kept of repositories, deletions that wait.

use std::time::Duration;

use holdall_format::TagToken;
use holdall_meter::counted;
use holdall_protocol::wire::RunReport;
use holdall_repository::Supersession;
use holdall_repository::retention::Policy;
use serde::{Deserialize, Serialize};

use crate::auth::rights::Right;

/// What is kept of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct Keeping {
    /// The rules.
    pub policy: Policy,
    /// What has one of these tags is kept whatever the rules say. A server knows tags by their tokens
    /// only.
    #[serde(default, with = "super::tag_tokens")]
    #[cfg_attr(feature = "web", schema(schema_with = super::tag_tokens::schema))]
    pub tags: Vec<TagToken>,
    /// How long a deletion that was asked for waits, in nanoseconds.
    pub delay_ns: i64,
}

impl Keeping {
    /// As long as nobody says otherwise: a deletion waits for a week.
    pub const USUAL: Self =
        Self { policy: Policy::USUAL, tags: Vec::new(), delay_ns: 7 * 24 * 3600 * 1_000_000_000 };

    /// What keeps all that either of both keeps, for as long as either does.
    pub(super) fn and(&self, other: &Self) -> Self {
        let mut tags = other.tags.clone();
        tags.extend(self.tags.iter().filter(|tag| !other.tags.contains(tag)));
        let delay_ns = self.delay_ns.max(other.delay_ns);
        Self { policy: self.policy.and(other.policy), tags, delay_ns }
    }
}

/// What is kept of a repository now, and what is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct KeepingEntry {
    /// Its name on this server; `None` for all that have no rules of their own.
    pub repository: Option<String>,
    /// Whether these are the rules of all that have none of their own.
    pub is_default: bool,
    /// What is in force.
    pub now: Keeping,
    /// What comes into force, and when, in nanoseconds since 1970 UTC.
    pub then: Option<(Keeping, i64)>,
}

/// Snapshots or superseded blocks that are to be deleted. Times are in nanoseconds since 1970 UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
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
    /// What goes as a whole, with all that is stored until then.
    #[serde(default)]
    pub removes: Option<Removal>,
    /// When it was asked for.
    pub asked_ns: i64,
    /// When it is carried out, if nobody cancels it.
    pub due_ns: i64,
}

/// A repository that is removed as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct Removal {
    /// The id of the machine that goes with it, in hexadecimal; `None` if none does.
    pub machine: Option<String>,
}

/// The deletion that removes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct Going {
    /// What the deletion is called.
    pub number: u64,
    /// When it is carried out, if nobody cancels it, in nanoseconds since 1970 UTC.
    pub due_ns: i64,
}

/// A machine, as its administrator sees it. Times are in nanoseconds since 1970 UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
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
    /// When it is removed, with its repository.
    #[serde(default)]
    pub going: Option<Going>,
    /// What it told of its last run, without points.
    #[serde(default)]
    pub last_run: Option<RunEntry>,
}

/// What a machine told of one of its runs.
///
/// Untrusted: but for the time when it came, all of it is as the machine told it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct RunEntry {
    /// When that came, in nanoseconds since 1970 UTC.
    pub received_ns: i64,
    /// What it told.
    #[serde(flatten)]
    pub report: RunReport,
}

/// Exit codes of backups: all was done, some could not be read, something is damaged.
const DONE: u8 = 0;
const INCOMPLETE: u8 = 3;
const DAMAGE: u8 = 20;

impl RunEntry {
    /// Whether all went well.
    pub fn is_good(&self) -> bool {
        self.report.exit_code == DONE
    }

    /// Whether it met damage.
    pub fn met_damage(&self) -> bool {
        self.report.exit_code == DAMAGE
    }

    /// Whether it committed a snapshot: of one that did not, no items are told.
    pub fn has_committed(&self) -> bool {
        self.report.items > 0
    }

    /// How it ended, in a few words; of one that went wrong as the end of a sentence.
    pub fn outcome(&self) -> String {
        let code = self.report.exit_code;
        let why = match code {
            DONE => return "done".to_owned(),
            INCOMPLETE if self.report.problems > 0 => {
                return format!("could not read {}", counted(self.report.problems, "item"));
            }
            INCOMPLETE => return "could not read everything".to_owned(),
            DAMAGE => return "met damage".to_owned(),
            10 => " (no repository)",
            11 => " (repository in use)",
            12 => " (wrong password or key)",
            13 => " (not allowed)",
            _ => "",
        };
        format!("failed with {code}{why}")
    }

    /// The same without how far it was over its time.
    pub(crate) fn without_points(mut self) -> Self {
        self.report.points.clear();
        self
    }
}

impl MachineEntry {
    /// Whether it asked for nothing in the time before `now_ns`; where it never did, since it was paired.
    pub fn is_absent(&self, time: Duration, now_ns: i64) -> bool {
        let since_ns = now_ns.saturating_sub(self.last_seen_ns.unwrap_or(self.created_ns));
        u128::try_from(since_ns).is_ok_and(|since_ns| since_ns > time.as_nanos())
    }
}
