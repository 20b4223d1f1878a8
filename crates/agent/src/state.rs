//! What the agent remembers between two starts, and what it shows of itself: one small file.
//!
//! It is written as a whole after each decision, so that `holdall agent status` reads it while the agent runs, and needs no
//! socket. Losing it costs no backup: each set then counts as one that was never backed up.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::conditions::{Conditions, Hold};

/// A moment that comes so much later, or the last one that there is.
pub(crate) fn later(moment: Timestamp, by: Duration) -> Timestamp {
    moment.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// Whether a moment is none that an agent has seen.
fn is_unknown(moment: &Timestamp) -> bool {
    *moment == Timestamp::UNIX_EPOCH
}

/// More than hundreds of sets take.
pub const STATE_MAX_BYTES: u64 = 1 << 20;

/// A pause, a file of its own. It holds until a moment, or until it is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// When it ends by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// What is remembered of a set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SetState {
    /// Since when the agent knows it; the start of 1970 for one that it does not.
    #[serde(skip_serializing_if = "is_unknown")]
    pub known_since: Timestamp,
    /// When its last run began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    /// When its last run ended. Before `started`: that run goes on, or the agent was killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// How its last run ended; none of one that a signal killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u8>,
    /// Why it failed, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Why it was ended early, to be done again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<Hold>,
    /// When its last good run ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_good: Option<Timestamp>,
    /// Up to when its schedule has been followed. What was missed since then is made up for by one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub served: Option<Timestamp>,
    /// When it is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// How many runs failed since the last good one.
    pub failures: u32,
    /// The exit codes of which the user was told since the last good run; none of one that was killed.
    pub failures_told: BTreeSet<Option<u8>>,
    /// When the user was warned that there is no good backup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warned: Option<Timestamp>,
}

impl SetState {
    /// One that the agent meets for the first time.
    pub(crate) fn new(now: Timestamp) -> Self {
        Self { known_since: now, ..Self::default() }
    }

    /// Since when there is no good backup.
    pub(crate) fn without_backup_since(&self) -> Timestamp {
        self.last_good.unwrap_or(self.known_since)
    }

    /// Has nothing lie in the future, as it does after a clock was set back: the set would wait for all that time.
    fn forget_future(&mut self, now: Timestamp, longest_retry: Duration) {
        self.known_since = self.known_since.min(now);
        let past = [
            &mut self.started,
            &mut self.ended,
            &mut self.last_good,
            &mut self.served,
            &mut self.warned,
        ];
        past.into_iter().flatten().for_each(|moment| *moment = (*moment).min(now));
        if let Some(retry_at) = &mut self.retry_at {
            *retry_at = (*retry_at).min(later(now, longest_retry));
        }
    }
}

/// What the agent remembers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// What the random delays of this computer come from.
    pub seed: u64,
    /// By name.
    pub sets: BTreeMap<String, SetState>,
    /// When disk and network were measured last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<Timestamp>,
    /// On which connection that was, if that was known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_on: Option<String>,
}

impl State {
    pub(crate) fn forget_future(&mut self, now: Timestamp, longest_retry: Duration) {
        self.sets.values_mut().for_each(|set| set.forget_future(now, longest_retry));
        self.measured = self.measured.map(|measured| measured.min(now));
    }
}

/// Why a set's next run is due when it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It was never backed up.
    First,
    /// Its schedule says so.
    Schedule,
    /// The last run failed.
    Retry,
}

/// What comes next for a set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outlook {
    /// Its name.
    pub set: String,
    /// Its schedule, as it was written.
    pub schedule: String,
    /// Whether it is being backed up.
    pub is_running: bool,
    /// When its next run is due; in the past if it is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    /// Why then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// What would keep it from beginning now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
}

/// The file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// What the agent remembers.
    #[serde(flatten)]
    pub state: State,
    /// What the computer was like.
    pub conditions: Conditions,
    /// What it was going to do.
    pub outlook: Vec<Outlook>,
    /// Why the settings cannot be understood, so that nothing begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings_problem: Option<String>,
    /// How the last run of each set since the agent's start looked for changes, in words.
    pub walks: BTreeMap<String, String>,
}
