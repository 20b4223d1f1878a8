//! The OpenAPI document of what programs may ask for, made of the commands themselves.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::admin::{Described, Pace, Scope, described, is_told_without_fields};

/// The document, in version 3.1.
pub(super) fn document() -> Value {
    let commands = described();
    let mut paths = serde_json::Map::new();
    let mut schemas = BTreeMap::new();
    for command in &commands {
        schemas.extend(command.schemas.clone());
        paths.insert(format!("/api/v1/admin/{}", command.name), operations(command));
    }
    paths.insert("/api/v1/openapi.json".into(), own_path());
    schemas.insert("Refused".into(), refused_schema());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "holdall server",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "What an administrator may have done, as by `holdall admin`. No request reaches content or \
                            names of files: the server has no keys.",
            "license": { "name": "Apache-2.0 OR MIT" }
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } }
        }
    })
}

fn operations(command: &Described) -> Value {
    let mut operations = serde_json::Map::new();
    let description = command.description.trim();
    let summary = description.split('.').next().unwrap_or_default();
    let more = command.scope_to_change.map(|more| format!("; to change it, {}", scope(more)));
    let least = scope(command.scope);
    let needs = format!("{description}\n\nScope: {least}{}.", more.unwrap_or_default());
    let post = json!({
        "operationId": command.name,
        "summary": summary,
        "description": needs,
        "requestBody": { "required": command.needs_fields, "content": json_of(&command.fields) },
        "responses": responses(command, true)
    });
    operations.insert("post".into(), post);
    if is_told_without_fields(command.name) {
        let get = json!({
            "operationId": format!("get-{}", command.name),
            "summary": summary,
            "description": needs,
            "responses": responses(command, false)
        });
        operations.insert("get".into(), get);
    }
    Value::Object(operations)
}

fn scope(scope: Scope) -> String {
    match scope {
        Scope::Own => "none: only `holdall admin` on the server does this".into(),
        scope => scope.to_string(),
    }
}

fn responses(command: &Described, has_fields: bool) -> Value {
    let refused = |why: &str| json!({ "description": why, "content": json_of(&json!({ "$ref": "#/components/schemas/Refused" })) });
    let mut responses = json!({
        "401": refused("The token is missing, lapsed or revoked"),
        "403": refused("The token's scope does not reach so far, or a page of another site asked"),
        "409": refused("A rule of the server is against it, or there is no such thing"),
        "421": refused("The server does not go by that name"),
        "500": refused("The server failed"),
        "503": refused("The server is busy or ending, or it takes longer than a request may")
    });
    let (status, done) = match command.pace {
        Pace::Long => (
            "202",
            json!({ "description": "The job that does it", "content": json_of(&command.job) }),
        ),
        _ => ("200", json!({ "description": "Done", "content": json_of(&command.reply) })),
    };
    responses[status] = done;
    if has_fields {
        responses["400"] = refused("The fields are none of this command");
        responses["413"] = refused("The fields are too long");
    }
    responses
}

fn own_path() -> Value {
    json!({ "get": {
        "operationId": "openapi",
        "summary": "This document",
        "security": [],
        "responses": { "200": { "description": "It", "content": json_of(&json!({ "type": "object" })) } }
    } })
}

fn refused_schema() -> Value {
    json!({
        "type": "object",
        "properties": { "error": { "type": "string", "description": "Why, in words for people" } },
        "required": ["error"]
    })
}

fn json_of(schema: &Value) -> Value {
    json!({ "application/json": { "schema": schema } })
}
