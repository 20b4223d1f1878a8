//! The table `[agent]` of `config.toml`: when `holdall agent` holds back.

use serde::Deserialize;

use super::time_span::TimeSpan;

/// When `holdall agent` holds back. What is left out is for the agent to decide.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AgentSettings {
    /// Each run begins up to so much later than it is due, so that not all machines come at once.
    pub(crate) random_delay: Option<TimeSpan>,
    /// What becomes of a run while the computer is on battery: `skip`, `slow` or `run`.
    pub(crate) on_battery: Option<Manner>,
    /// What becomes of a run on a connection that is paid by volume: `skip`, `slow` or `run`.
    pub(crate) on_metered: Option<Manner>,
    /// Runs only on these connections, by the names that NetworkManager has for them.
    pub(crate) networks: Vec<String>,
    /// Notifies the user when there was no backup for so long.
    pub(crate) warn_after: Option<TimeSpan>,
}

/// What becomes of a run that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Manner {
    /// It waits until the situation has passed.
    Skip,
    /// It runs, and takes less of the connection.
    Slow,
    /// It runs as always.
    Run,
}
