//! `docs/json-output.schema.json` is what `--json` prints: every object that any test reads is
//! checked against it, and the schema itself is checked here.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Value, json};

/// The schema, as it is published.
static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let text = include_str!("../../../../docs/json-output.schema.json");
    serde_json::from_str(text).expect("the schema is JSON")
});

static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| {
    let options = jsonschema::draft202012::options().should_validate_formats(true);
    options.build(&SCHEMA).expect("the schema is a schema")
});

/// What is wrong with an object, a line each; empty if it is as the schema says.
fn wrong(object: &Value) -> String {
    let one = |error: jsonschema::ValidationError<'_>| {
        format!("{} (at {})", error, error.instance_path())
    };
    VALIDATOR.iter_errors(object).map(one).collect::<Vec<_>>().join("\n")
}

/// Checks an object that `--json` printed.
#[track_caller]
pub(crate) fn check(object: &Value) {
    let wrong = wrong(object);
    assert!(wrong.is_empty(), "not as docs/json-output.schema.json says:\n{wrong}\n{object:#}");
}

/// The message types that the schema allows.
fn message_types() -> Vec<&'static str> {
    let types = &SCHEMA["properties"]["message_type"]["enum"];
    types.as_array().expect("a list").iter().filter_map(Value::as_str).collect()
}

#[test]
fn every_message_type_has_its_definition_and_no_other_is_allowed() {
    let types = message_types();
    let chosen = |rule: &Value| rule["if"]["properties"]["message_type"]["const"].clone();
    let rules = SCHEMA["allOf"].as_array().unwrap();
    assert_eq!(rules.iter().map(chosen).collect::<Vec<_>>(), types);
    for (rule, name) in rules.iter().zip(&types) {
        assert_eq!(rule["then"]["$ref"], format!("#/$defs/{name}"));
        assert!(SCHEMA["$defs"][name].is_object(), "{name} is not defined");
        assert!(!wrong(&json!({ "message_type": name })).is_empty(), "{name} needs no fields");
    }
    assert!(wrong(&json!({ "message_type": "gossip" })).contains("gossip"));
    assert!(!wrong(&json!({ "version": "1.0.0" })).is_empty());
}

#[test]
fn a_missing_field_or_one_of_another_kind_is_found_and_an_added_one_is_none_of_our_business() {
    let version =
        json!({ "message_type": "version", "version": "1.2.3", "os": "linux", "arch": "x" });
    check(&version);
    for field in ["version", "os", "arch"] {
        let mut without = version.clone();
        without.as_object_mut().unwrap().remove(field);
        assert!(wrong(&without).contains(field));
        let mut other = version.clone();
        other[field] = json!(7);
        assert!(!wrong(&other).is_empty(), "{field}");
    }
    let mut more = version;
    more["added"] = json!([1]);
    check(&more);
}

#[test]
fn every_message_type_is_explained_in_the_page_for_people() {
    let page = include_str!("../../../../docs/json-output.md");
    for name in message_types() {
        assert!(page.contains(&format!("| `{name}` |")), "{name} is not in docs/json-output.md");
    }
}
