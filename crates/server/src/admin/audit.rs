//! What the audit log says of a command.

use serde::Serialize;

use super::administration::Administration;
use super::entries::Audit;
use crate::ServerError;
use crate::accounts::AuditEntry;
use crate::auth::actor::Actor;

impl Administration<'_> {
    /// Notes what was asked, and whether it was done. What cannot be noted is told in the log: it was done.
    pub(crate) fn note(&self, command: &str, fields: &impl Serialize, error: Option<&ServerError>) {
        let Actor { who, from } = self.actor.clone();
        let entry = AuditEntry {
            number: 0,
            time_ns: self.stores.now_ns(),
            who,
            from,
            command: command.to_owned(),
            fields: serde_json::to_value(fields).unwrap_or_default(),
            error: error.map(ToString::to_string),
        };
        if let Err(error) = self.accounts.note_audit(&entry) {
            self.log(&format!("the audit log lacks {command} by {}: {error}", entry.who));
        }
    }

    /// What was noted before that number, the newest first.
    pub(super) fn audit(&self, before: Option<u64>, most: usize) -> Result<Audit, ServerError> {
        Ok(Audit { entries: self.accounts.audit(before, most)? })
    }
}
