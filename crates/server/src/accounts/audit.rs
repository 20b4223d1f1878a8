//! The audit log: who had what changed, when, and from where. Entries are added and never changed; beyond
//! [`MOST`] the oldest go.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::Accounts;
use crate::ServerError;

/// Most entries that are kept.
pub(super) const MOST: u64 = 20_000;
/// Most entries of a day of somebody who does not administer, so that they push no others out.
const MOST_OF_A_DAY: u32 = 200;
const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;
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

/// How many entries each had on the day that it is.
#[derive(Default)]
pub(super) struct Noted(Mutex<HashMap<String, (i64, u32)>>);

impl Noted {
    /// Counts an entry, if there may be one more.
    fn count(&self, who: &str, now_ns: i64) -> bool {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let today = now_ns.div_euclid(DAY_NS);
        noted.retain(|_, (day, _)| *day == today);
        let (_, count) = noted.entry(who.to_owned()).or_insert((today, 0));
        *count = count.saturating_add(1);
        *count <= MOST_OF_A_DAY
    }
}

impl Accounts {
    /// Whether somebody who does not administer may have one more entry today.
    pub(crate) fn may_note(&self, who: &str) -> bool {
        self.noted.count(who, self.now_ns())
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_does_not_administer_has_so_many_entries_a_day_and_others_have_theirs() {
        let noted = Noted::default();
        let counted = |who: &str, now_ns| (0..1000).filter(|_| noted.count(who, now_ns)).count();
        assert_eq!(counted("token a", DAY_NS), MOST_OF_A_DAY as usize);
        assert_eq!(counted("token a", DAY_NS + 5), 0);
        assert_eq!(counted("bob in a browser", DAY_NS + 5), MOST_OF_A_DAY as usize);
        assert_eq!(counted("token a", 2 * DAY_NS), MOST_OF_A_DAY as usize, "the next day");
    }
}
