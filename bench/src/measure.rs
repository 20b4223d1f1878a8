//! What is measured, in the order in which a run does it.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// One step of a run. The first always happens, for the others stand on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Measure {
    /// Everything into an empty repository
    First,
    /// The same again
    Unchanged,
    /// Everything into an empty folder
    Restore,
    /// After 1 % of the files changed and 0.5 % were added, all over the set
    Changed,
    /// After as many changed and were added in 1 % of the directories
    ChangedNear,
}

impl Measure {
    /// In the order of a run.
    pub(crate) const ALL: [Self; 5] =
        [Self::First, Self::Unchanged, Self::Restore, Self::Changed, Self::ChangedNear];

    /// For a person.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::First => "first full",
            Self::Unchanged => "unchanged",
            Self::Restore => "restore",
            Self::Changed => "1 % changed, 0.5 % new",
            Self::ChangedNear => "the same in 1 % of the directories",
        }
    }

    /// As it is typed.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Unchanged => "unchanged",
            Self::Restore => "restore",
            Self::Changed => "changed",
            Self::ChangedNear => "changed-near",
        }
    }

    /// Whether data go from the client to the server.
    pub(crate) fn is_backup(self) -> bool {
        self != Self::Restore
    }
}
