//! What a document says of a command.

use serde_json::{Map, Value};
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
    /// Whether it is none without any.
    pub(crate) needs_fields: bool,
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
        needs_fields: bool,
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
            needs_fields,
            fields: as_json(&<C as PartialSchema>::schema()),
            job: as_json(&JobEntry::schema()),
            pace: C::PACE,
            reply: as_json(&<R as PartialSchema>::schema()),
            schemas: schemas.collect(),
        }
    }
}

fn as_json(schema: &impl serde::Serialize) -> Value {
    let mut schema = serde_json::to_value(schema).unwrap_or_default();
    mend(&mut schema);
    schema
}

/// Says what the derived schema says otherwise than the command takes it: whole numbers up to the largest of their type,
/// one name alone where there is a choice by name, and arrays whose items differ in a way that programs know.
fn mend(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            tell_most(fields);
            tell_items(fields);
            if let Some(Value::Array(choices)) = fields.get_mut("oneOf") {
                choices.iter_mut().filter_map(Value::as_object_mut).for_each(tell_only_name);
            }
            fields.values_mut().for_each(mend);
        }
        Value::Array(items) => items.iter_mut().for_each(mend),
        _ => {}
    }
}

fn tell_most(number: &mut Map<String, Value>) {
    if number.get("minimum").and_then(Value::as_u64).is_none() || number.contains_key("maximum") {
        return;
    }
    let most = match number.remove("format") {
        Some(Value::String(format)) if format == "int32" => u32::MAX.into(),
        _ => u64::MAX,
    };
    number.insert("maximum".into(), most.into());
}

fn tell_items(array: &mut Map<String, Value>) {
    let Some(Value::Array(each)) = array.remove("prefixItems") else { return };
    for bound in ["minItems", "maxItems"] {
        array.insert(bound.into(), each.len().into());
    }
    array.insert("items".into(), serde_json::json!({ "anyOf": each }));
}

fn tell_only_name(choice: &mut Map<String, Value>) {
    let names = choice.get("properties").and_then(Value::as_object).map_or(0, Map::len);
    if names == 1 {
        choice.insert("additionalProperties".into(), false.into());
    }
}
