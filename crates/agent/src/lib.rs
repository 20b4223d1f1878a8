//! The agent: which sets are to be backed up when, and what keeps one from it.
//!
//! People forget to make backups. The agent runs all the time, waits for the schedule of each set, and
//! has the command line start a process for each run, so that it stays small itself and a run that dies takes nothing along.
//!
//! It knows no repository, no key and no file that is backed up, only in which folders something changed ([`journal`]).
//! [`Scheduler`] decides and is pure. What the computer is like comes from D-Bus (with the feature `dbus`), and absent services
//! keep no backup back.
//!
//! ```text
//! config.toml ──> Plan ────┐
//! clock, sleep ────────────┼──> Scheduler ──> Step (start, stop, tell, wait until)
//! D-Bus ──> Conditions ────┤         └──────> Report, for `holdall agent status`
//! pause, ends of runs ─────┘
//! ```

#[cfg(feature = "dbus")]
mod bus;
mod calendar;
mod conditions;
pub mod journal;
#[cfg(not(feature = "dbus"))]
mod no_bus;
mod plan;
mod schedule;
mod state;
pub mod units;

#[cfg(feature = "dbus")]
pub use bus::{Surroundings, show};
pub use calendar::{Calendar, CalendarError};
pub use conditions::{Conditions, Hold, LOW_BATTERY_PERCENT};
#[cfg(not(feature = "dbus"))]
pub use no_bus::{Surroundings, show};
pub use plan::{Manner, Manners, Plan, PlannedSet, Schedule};
pub use schedule::{Ending, Notice, Scheduler, Step};
pub use state::{Cause, Outlook, Pause, Report, STATE_MAX_BYTES, SetState, State};
