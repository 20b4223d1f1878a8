//! What the audit log says of a command.

use serde::Serialize;
use serde_json::Value;

use super::administration::Administration;
use super::entries::Audit;
use crate::ServerError;
use crate::accounts::AuditEntry;
use crate::auth::actor::Actor;
use crate::auth::scope::Scope;

impl Administration<'_> {
    /// Notes what was asked, and whether it was done. What cannot be noted is told in the log: it was done.
    pub(crate) fn note(&self, command: &str, fields: &impl Serialize, error: Option<&ServerError>) {
        let Actor { who, from, scope } = self.actor.clone();
        if scope < Scope::Administer && !self.accounts.may_note(&who) {
            self.log(&format!(
                "{command} by {who} is not in the audit log, which has much of theirs today"
            ));
            return;
        }
        let entry = AuditEntry {
            number: 0,
            time_ns: self.stores.now_ns(),
            who,
            from,
            command: command.to_owned(),
            fields: serde_json::to_value(fields)
                .map(without_secrets)
                .map(not_too_long)
                .unwrap_or_default(),
            error: error.map(|error| error.to_string().chars().take(ERROR_MOST).collect()),
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

/// Most bytes of fields that are noted, and characters of an error.
const FIELDS_MOST: usize = 1000;
const ERROR_MOST: usize = 500;

/// The same unless it is too long to keep twenty thousand times.
fn not_too_long(fields: Value) -> Value {
    match fields.to_string().len() > FIELDS_MOST {
        true => serde_json::json!({ "fields": "(too long to note)" }),
        false => fields,
    }
}

/// What an address or a password is replaced by.
const HIDDEN: &str = "(not noted)";

/// The same without what may be a secret.
fn without_secrets(fields: Value) -> Value {
    match fields {
        Value::Object(fields) => {
            let hide = |(name, value): (String, Value)| {
                let is_secret = ["url", "password"].contains(&&*name) && !value.is_null();
                let value = if is_secret { HIDDEN.into() } else { without_secrets(value) };
                (name, value)
            };
            fields.into_iter().map(hide).collect()
        }
        other => other,
    }
}
