//! What a document says of a command.

use serde_json::Value;
use utoipa::{PartialSchema, ToSchema};

use super::command::{AdminCommand, Pace};
use crate::auth::scope::Scope;
use crate::jobs::JobEntry;

/// A command as a document describes it.
pub(crate) struct Described {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    /// What it needs at the least.
    pub(crate) scope: Scope,
    /// What it needs to change something, where that is more.
    pub(crate) scope_to_change: Option<Scope>,
    /// Whether it may be asked for without a body.
    pub(crate) is_told_without_fields: bool,
    /// The schema of its fields, and that of its answer.
    pub(crate) fields: Value,
    pub(crate) reply: Value,
    /// The schema of the job that it is, if it takes long.
    pub(crate) job: Value,
    pub(crate) pace: Pace,
    /// What both refer to, by name.
    pub(crate) schemas: Vec<(String, Value)>,
}

impl Described {
    pub(super) fn of<C: AdminCommand + ToSchema, R: ToSchema>(
        description: &'static str,
        scope: Scope,
        scope_to_change: Option<Scope>,
        is_told_without_fields: bool,
    ) -> Self {
        let mut parts = Vec::new();
        C::schemas(&mut parts);
        R::schemas(&mut parts);
        JobEntry::schemas(&mut parts);
        let schemas = parts.into_iter().map(|(name, schema)| (name, as_json(&schema)));
        Self {
            name: C::NAME,
            description,
            scope,
            scope_to_change,
            is_told_without_fields,
            fields: as_json(&<C as PartialSchema>::schema()),
            job: as_json(&JobEntry::schema()),
            pace: C::PACE,
            reply: as_json(&<R as PartialSchema>::schema()),
            schemas: schemas.collect(),
        }
    }
}

fn as_json(schema: &impl serde::Serialize) -> Value {
    serde_json::to_value(schema).unwrap_or_default()
}
