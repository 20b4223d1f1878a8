//! What the agent is to do, as `config.toml` says it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::calendar::{Calendar, CalendarError};

/// A set by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedSet {
    /// Its name in `config.toml`.
    pub name: String,
    /// When it is backed up.
    pub schedule: Schedule,
    /// Whether its repository is on a server. What the network is like does not matter to a set that goes to a disk.
    pub uses_network: bool,
}

/// When a set is backed up.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    text: String,
    /// `None` for a set that only a person starts.
    calendar: Option<Calendar>,
}

impl Schedule {
    /// The word for sets that only a person starts.
    const NEVER: &str = "never";

    /// Whether it names moments, and none of them comes after that one, as `2020-01-01` and `*-2-30`.
    #[must_use]
    pub fn is_over(&self, after: Timestamp, local: &TimeZone) -> bool {
        self.calendar().is_some_and(|calendar| calendar.next_after(after, local).is_none())
    }

    pub(crate) fn calendar(&self) -> Option<&Calendar> {
        self.calendar.as_ref()
    }
}

impl Default for Schedule {
    fn default() -> Self {
        let calendar = "hourly".parse().ok();
        Self { text: "hourly".to_owned(), calendar }
    }
}

impl FromStr for Schedule {
    type Err = CalendarError;

    fn from_str(text: &str) -> Result<Self, CalendarError> {
        let is_never = text.trim().eq_ignore_ascii_case(Self::NEVER);
        let calendar = (!is_never).then(|| text.parse()).transpose()?;
        Ok(Self { text: text.trim().to_owned(), calendar })
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What a run does that is due under a condition that costs the user something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// It waits until the condition ends.
    Skip,
    /// It sends no more than a small share of what a line takes.
    Slow,
    /// The condition does not matter.
    Run,
}

/// The agent's manners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manners {
    /// A run begins at random up to so much later than its schedule says.
    pub random_delay: Duration,
    /// On battery. `None`: it runs, unless the battery is low.
    pub on_battery: Option<Manner>,
    /// On a connection whose data cost money.
    pub on_metered: Manner,
    /// The only connections that backups use, by NetworkManager's names; without any, all.
    pub networks: Vec<String>,
    /// The user is warned of a set without a good backup for so long.
    pub warn_after: Duration,
}

impl Default for Manners {
    fn default() -> Self {
        Self {
            random_delay: Duration::from_mins(5),
            on_battery: None,
            on_metered: Manner::Skip,
            networks: Vec::new(),
            warn_after: Duration::from_hours(72),
        }
    }
}

/// All that the agent is to do.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// What holds for all sets.
    pub manners: Manners,
    /// Each set has a name of its own.
    pub sets: Vec<PlannedSet>,
}
