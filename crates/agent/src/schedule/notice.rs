//! Messages to the user: once for each kind of failure in a series, and once a day while there is no good backup.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use super::{Ending, Scheduler};
use crate::plan::PlannedSet;
use crate::state::later;

/// How often the user is warned of the same.
const WARNED_EACH: Duration = Duration::from_hours(24);

/// A message to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A run failed, the first of its kind in a series, in a way that does not pass by itself.
    Failed {
        /// The set.
        set: String,
        /// How it failed.
        ending: Ending,
    },
    /// There has been no good backup for too long.
    Overdue {
        /// The set.
        set: String,
        /// When the last good run ended, or since when there has been none.
        since: Timestamp,
        /// For how many hours.
        hours: u64,
    },
    /// The settings cannot be understood.
    Settings {
        /// Why, in words.
        problem: String,
    },
}

impl Notice {
    /// What happened, in a few words.
    #[must_use]
    pub fn title(&self) -> String {
        match self {
            Self::Failed { set, .. } => format!("The backup of `{set}` failed"),
            Self::Overdue { set, hours, .. } => match hours {
                0 => format!("No backup of `{set}` for less than an hour"),
                1 => format!("No backup of `{set}` for an hour"),
                2..24 => format!("No backup of `{set}` for {hours} hours"),
                24..48 => format!("No backup of `{set}` for a day"),
                hours => format!("No backup of `{set}` for {} days", hours / 24),
            },
            Self::Settings { .. } => "Nothing is backed up: config.toml is wrong".to_owned(),
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed { ending: Ending { message: Some(message), .. }, .. } => {
                write!(f, "{message}. `holdall agent status` says more.")
            }
            Self::Settings { problem } => {
                write!(f, "{problem}. Backups go on once it is corrected.")
            }
            _ => f.write_str("`holdall agent status` says more."),
        }
    }
}

impl Scheduler {
    /// The warning that is due, which counts as given from then on.
    pub(super) fn overdue(&mut self, now: Timestamp) -> Option<Notice> {
        if now < self.settled_at {
            return None;
        }
        let is_overdue =
            |set: &&PlannedSet| self.overdue_at(set, now).is_some_and(|moment| moment <= now);
        let set = self.plan.sets.iter().find(is_overdue)?.name.clone();
        let state = self.state.sets.get_mut(&set)?;
        state.warned = Some(now);
        let since = state.without_backup_since();
        let hours = u64::try_from(now.duration_since(since).as_hours()).unwrap_or(0);
        Some(Notice::Overdue { set, since, hours })
    }

    /// When the user is to be warned of a set.
    pub(super) fn overdue_at(&self, set: &PlannedSet, now: Timestamp) -> Option<Timestamp> {
        set.schedule.calendar()?;
        let state = self.state.sets.get(&set.name)?;
        let first = later(state.without_backup_since(), self.plan.manners.warn_after);
        let again = state.warned.map(|warned| later(warned, WARNED_EACH));
        let moment = again.map_or(first, |again| again.max(first));
        // After a start and a sleep, a backup comes before a warning.
        Some(if moment <= now { moment.max(self.settled_at) } else { moment })
    }
}
