//! `docs/json-output.schema.json` is what `--json` prints: every object that any test reads is
//! checked against it, and the schema itself is checked here.

use std::collections::BTreeSet;
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

/// The page for people.
const PAGE: &str = include_str!("../../../../docs/json-output.md");

/// The sections of the page, each with its heading's words.
fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    let section = |text: &'static str| text.split_once('\n').expect("a heading and its text");
    let until_next = |(heading, text): (_, &'static str)| {
        (heading, text.split("\n## ").next().unwrap_or_default())
    };
    PAGE.split("\n### ").skip(1).map(section).map(until_next)
}

/// The fields that a section lists: what stands before the colon of each of its points.
fn listed(section: &str) -> BTreeSet<&str> {
    let points = section.lines().filter_map(|line| line.strip_prefix("- "));
    let names = points.map(|point| point.split(':').next().unwrap_or_default());
    names.flat_map(|names| names.split('`').skip(1).step_by(2)).collect()
}

/// The fields of a definition. What stands beside a path in base64 is said once for all of them.
fn fields(definition: &'static Value) -> BTreeSet<&'static str> {
    let own = definition["properties"].as_object().into_iter().flat_map(|fields| fields.keys());
    let mut all: BTreeSet<&str> = own.map(String::as_str).collect();
    if let Some(other) = definition["$ref"].as_str() {
        all.extend(fields(&SCHEMA["$defs"][other.trim_start_matches("#/$defs/")]));
    }
    let others = ["allOf", "anyOf", "oneOf"].map(|of| definition[of].as_array());
    all.extend(others.into_iter().flatten().flatten().flat_map(fields));
    all.retain(|name| !["path_base64", "paths_base64"].contains(name));
    all
}

#[test]
fn the_page_for_people_has_every_message_and_every_field_and_no_others() {
    let types: BTreeSet<&str> = message_types().into_iter().collect();
    let of_messages: Vec<_> = sections().filter(|(heading, _)| !heading.contains(" of ")).collect();
    let named = of_messages.iter().map(|(heading, _)| heading.trim_matches('`'));
    assert_eq!(named.clone().collect::<BTreeSet<_>>(), types);
    for ((_, section), name) in of_messages.iter().zip(named).filter(|(_, name)| *name != "summary")
    {
        assert_eq!(listed(section), fields(&SCHEMA["$defs"][name]), "fields of {name}");
    }
}

#[test]
fn the_page_for_people_has_every_summary_and_every_field_and_no_others() {
    let summaries = SCHEMA["$defs"]["summary"]["anyOf"].as_array().unwrap();
    let names = summaries.iter().filter_map(|rule| rule["$ref"].as_str());
    let mut left: BTreeSet<&str> = names.map(|name| name.trim_start_matches("#/$defs/")).collect();
    for (heading, section) in sections().filter(|(heading, _)| heading.contains(" of ")) {
        let command = heading.split('`').nth(3).unwrap();
        // The first command of a heading gives the definition its name, without its options.
        let words = command.split(" --").next().unwrap().replace(' ', "_");
        let name =
            left.iter().copied().filter(|name| words.starts_with(&name.replace("_summary", "")));
        let name = name.max_by_key(|name| name.len()).unwrap_or_else(|| panic!("no {heading}"));
        left.remove(name);
        assert_eq!(listed(section), fields(&SCHEMA["$defs"][name]), "fields of {heading}");
    }
    assert!(left.is_empty(), "not in docs/json-output.md: {left:?}");
}
