//! Who had what changed: the audit log, the newest first, a hundred entries to a page.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use holdall_pages::name;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::problem::Problem;
use super::shared::Shared;
use super::visitor::SignedIn;
use super::words::time;
use crate::admin::{Administration, AuditEntry, ListAudit, Pace, Scope};

/// Entries on a page.
const ENTRIES: usize = 100;

#[derive(Deserialize)]
pub(super) struct Wanted {
    /// Only entries that are older than the one of that number.
    before: Option<u64>,
}

pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    who: SignedIn,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<Response, Problem> {
    if !who.may(Scope::Administer) {
        return Err(Problem::forbidden("Only an administrator sees who had what changed."));
    }
    let Ok(Query(Wanted { before })) = wanted else {
        return Err(Problem::not_found("Entries are found by a number."));
    };
    let read = move |on: &Administration<'_>| {
        Ok(on.carry_out(&ListAudit { before, most: ENTRIES })?.entries)
    };
    let entries = shared.read(Pace::Quick, read).await?;
    let content = html! {
        @if entries.is_empty() { p { "Nothing." } } @else { (table(&entries)) }
        @if let (ENTRIES, Some(last)) = (entries.len(), entries.last()) {
            p { a href=(format!("/audit?before={}", last.number)) { "What was before" } }
        }
        p class="faint" { code { "holdall admin audit" } " lists all of it." }
    };
    Ok(who.page(&shared, "What was changed", content))
}

fn table(entries: &[AuditEntry]) -> Markup {
    html! {
        table {
            thead { tr { th { "When" } th { "Who" } th { "What" } } }
            tbody {
                @for entry in entries {
                    tr {
                        td { (time(entry.time_ns)) }
                        td { (name(&entry.who)) @if let Some(from) = &entry.from { " at " (from) } }
                        td {
                            (entry.command)
                            @let fields = words(&entry.fields);
                            @if !fields.is_empty() { ": " (name(&fields)) }
                            @if let Some(why) = &entry.error { "; not done: " (name(why)) }
                        }
                    }
                }
            }
        }
    }
}

/// Fields without the signs of JSON: `name laptop, valid for s 600`.
fn words(fields: &Value) -> String {
    match fields {
        Value::Object(fields) => {
            let said = fields.iter().map(|(field, value)| (field.replace('_', " "), words(value)));
            let said = said.filter(|(_, value)| !value.is_empty());
            said.map(|(field, value)| format!("{field} {value}")).collect::<Vec<_>>().join(", ")
        }
        Value::Array(all) => all.iter().map(words).collect::<Vec<_>>().join(" "),
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_told_without_the_signs_of_json() {
        let fields = json!({"name": "attic", "valid_for_s": 600, "repository": null, "tags": ["a", "b"], "none": [], "rules": {"last": 3}});
        assert_eq!(words(&fields), "name attic, rules last 3, tags a b, valid for s 600");
        assert_eq!(words(&json!({})), "");
    }
}
