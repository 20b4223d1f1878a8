//! The audit log: who had what changed, when, and from where. Entries are added and never changed; beyond
//! [`MOST`] the oldest go.

use serde::{Deserialize, Serialize};

use super::Accounts;
use crate::ServerError;

/// Most entries that are kept.
pub(super) const MOST: u64 = 20_000;
/// Most that are told at once.
const TOLD_MOST: usize = 500;

/// Something that was asked of the server by whoever may change it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct AuditEntry {
    /// Its place in the log, from 1 on.
    #[serde(default)]
    pub number: u64,
    /// When, in nanoseconds since 1970 UTC, by the server's clock.
    pub time_ns: i64,
    /// Who asked: `terminal`, `ann in a browser`, `token grafana`.
    pub who: String,
    /// From which address; `None` for this computer's terminal.
    pub from: Option<String>,
    /// The command.
    pub command: String,
    /// Its fields.
    pub fields: serde_json::Value,
    /// Why it was refused or failed; `None` if it was done.
    pub error: Option<String>,
}

impl Accounts {
    /// Adds an entry, which is durable then.
    pub(crate) fn note_audit(&self, entry: &AuditEntry) -> Result<(), ServerError> {
        self.database.append_audit(entry)
    }

    /// Up to `most` entries, the newest first, before the one of that number where one is given.
    pub(crate) fn audit(
        &self,
        before: Option<u64>,
        most: usize,
    ) -> Result<Vec<AuditEntry>, ServerError> {
        self.database.audit(before.unwrap_or(u64::MAX), most.min(TOLD_MOST))
    }
}
