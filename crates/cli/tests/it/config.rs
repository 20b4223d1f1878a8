//! `holdall config`, and that the published schema of `config.toml`, the example and the types in the code say the same.

use std::collections::BTreeSet;
use std::fs;

use jsonschema::Validator;
use serde_json::Value;

use crate::house::{Machine, Outcome, text};

/// The schema, as it is published.
const SCHEMA: &str = include_str!("../../../../docs/config.schema.json");
/// The page whose tables are made from the types.
const REFERENCE: &str = include_str!("../../../../docs/reference.md");

fn schema() -> (Value, Validator) {
    let schema = serde_json::from_str(SCHEMA).unwrap();
    let validator = jsonschema::draft202012::options().build(&schema).unwrap();
    (schema, validator)
}

fn machine(config: &str) -> Machine {
    let machine = Machine::new();
    fs::create_dir_all(machine.path("config")).unwrap();
    fs::write(machine.path("config/config.toml"), config).unwrap();
    machine
}

/// The example with each of its keys in use.
fn example() -> String {
    let printed = Machine::new().ok(["config", "generate"]).stdout;
    let used = |line: &str| match line.strip_prefix('#') {
        Some(rest) if !rest.starts_with(' ') => rest.to_owned(),
        _ => line.to_owned(),
    };
    printed.lines().map(used).collect::<Vec<_>>().join("\n")
}

/// A text in TOML, as a schema sees it.
fn as_json(text: &str) -> Value {
    let value: toml::Table = toml::from_str(text).unwrap();
    serde_json::to_value(value).unwrap()
}

/// The keys of a value, by how the reference calls them.
fn keys_of(value: &Value) -> BTreeSet<String> {
    fn collect(value: &Value, above: &[&str], keys: &mut BTreeSet<String>) {
        for (name, value) in value.as_object().into_iter().flatten() {
            let is_named = matches!(above, ["repositories" | "sets"]);
            let path = [above, &[if is_named { "NAME" } else { name }]].concat();
            keys.insert(path.join("."));
            collect(value, &path, keys);
        }
    }
    let mut keys = BTreeSet::new();
    collect(value, &[], &mut keys);
    keys.retain(|key| !key.ends_with(".NAME"));
    keys
}

/// The keys that the reference has, which are those of the types.
fn keys_of_types() -> BTreeSet<String> {
    let table =
        REFERENCE.split("### Configuration").nth(1).unwrap().split("\n### ").next().unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    rows.map(str::to_owned).collect()
}

/// The keys that the schema has.
fn keys_of_schema(schema: &Value) -> BTreeSet<String> {
    let of = |definition: &Value, above: &str| {
        let names = definition["properties"].as_object().unwrap().keys();
        names.map(|name| format!("{above}{name}")).collect::<BTreeSet<_>>()
    };
    let tables = [
        ("repository", "repositories.NAME."),
        ("set", "sets.NAME."),
        ("hooks", "sets.NAME.hooks."),
        ("agent", "agent."),
    ];
    let below = tables.iter().flat_map(|(name, above)| of(&schema["$defs"][name], above));
    below.chain(of(schema, "")).collect()
}

#[test]
fn types_schema_and_example_have_the_same_keys() {
    let (schema, _) = schema();
    let types = keys_of_types();
    assert!(types.len() > 40, "{types:?}");
    assert_eq!(keys_of_schema(&schema), types);
    assert_eq!(keys_of(&as_json(&example())), types);
}

#[test]
fn the_example_is_right_as_it_is_and_with_each_key_in_use() {
    let (_, validator) = schema();
    for config in [Machine::new().ok(["config", "generate"]).stdout, example()] {
        let machine = machine(&config);
        machine.ok(["config", "validate"]);
        assert!(validator.is_valid(&as_json(&config)));
    }
}

#[test]
fn what_holdall_refuses_the_schema_does_too() {
    let (_, validator) = schema();
    for config in [
        "repo = \"/x\"",
        "repository = 1",
        "[repositories.usb]",
        "[repositories.\"a b\"]\nrepository = \"/x\"",
        "[sets.home]",
        "[sets.home]\npaths = \"/\"",
        "[sets.home]\npaths = [\"/\"]\ncommand = [\"true\"]\nname = \"x\"",
        "[sets.home]\ncommand = [\"true\"]",
        "[sets.home]\npaths = [\"/\"]\nname = \"x\"",
        "[sets.home]\npaths = [\"/\"]\nstreams = 9",
        "[sets.home]\npaths = [\"/\"]\nhooks.befor = \"true\"",
        "[sets.home]\npaths = [\"/\"]\nhooks.timeout = \"5\"",
        "[agent]\non_battery = \"stop\"",
    ] {
        assert!(!validator.is_valid(&as_json(config)), "{config}");
        machine(config).run(["config", "validate"]).expect(2);
    }
}

#[test]
fn what_is_wrong_is_told_by_file_line_and_key_all_at_once() {
    let config = "\
repository = \"ftp://nas\"
[repositories.usb]
repository = \"backup\"
[sets.home]
paths = [\"/\"]
limit_upload = \"2XB\"
streams = 4
[sets.docs]
paths = [\"/docs\"]
repository = \"ubs\"
[sets.mail]
paths = [\"/mail\"]
exclude = [\"[\"]
schedule = \"*-2-30\"
";
    let machine = machine(config);
    let told = machine.run(["config", "validate", "--json"]).expect(2).of_type("validity");
    let problems = told[0]["problems"].as_array().unwrap();
    let places: Vec<_> = problems
        .iter()
        .map(|one| format!("{} {}", one["line"], one["key"].as_str().unwrap()))
        .collect();
    let expected = [
        "1 repository",
        "3 repositories.usb.repository",
        "6 sets.home.limit_upload",
        "10 sets.docs.repository",
        "13 sets.mail.exclude",
        "14 sets.mail.schedule",
    ];
    assert_eq!(places, expected);
    assert!(problems[3]["reason"].as_str().unwrap().contains("did you mean usb?"), "{told:?}");
    let words = machine.run(["config", "validate"]).expect(2).stderr;
    let first =
        format!("error: {}: line 1: repository: ", text(&machine.path("config/config.toml")));
    assert!(words.starts_with(&first), "{words}");
    fs::write(machine.path("other"), "repositroy = \"/x\"\n").unwrap();
    let other = machine.run(["config", "validate", text(&machine.path("other"))]).expect(2).stderr;
    assert!(
        other.contains("other: line 1: repositroy: there is no such key: did you mean repository?"),
        "{other}"
    );
    machine.run(["config", "validate", text(&machine.path("nowhere"))]).expect(1);
    let nothing = Machine::new().ok(["config", "validate"]).stdout;
    assert!(nothing.contains("is not there"), "{nothing}");
}

#[test]
fn each_value_is_shown_with_where_it_comes_from_and_no_secret() {
    let config = "\
password_command = \"TOKEN=geheim pass show backup\"
repository = \"usb\"
[repositories.usb]
repository = \"/mnt/usb\"
[repositories.nas]
repository = \"https://nas\"
password_command = \"pass geheim\"
[sets.shop]
name = \"shop.dump\"
command = [\"mysqldump\", \"-pgeheim\", \"shop\"]
repository = \"nas\"
hooks.after = \"curl https://ping.example/geheim\"
";
    let machine = machine(config).with_password(None);
    let shown = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = machine.command([&["config", "show", "--json"], args].concat());
        let shown = Outcome::of(command.envs(variables.iter().copied())).expect(0);
        assert!(!shown.stdout.contains("geheim"), "{}", shown.stdout);
        let all = shown.of_type("setting");
        move |key: &str| {
            let one = all.iter().find(|one| one["key"] == key).unwrap_or_else(|| panic!("{key}"));
            let part = |name: &str| one[name].to_string().trim_matches('"').to_owned();
            ["value", "origin", "name", "line"].map(part).join(" ").replace(" null", "")
        }
    };
    let by_file = shown(&[], &[]);
    assert_eq!(by_file("repository"), "/mnt/usb file 2");
    assert_eq!(by_file("password"), "sh file 1");
    assert_eq!(by_file("sets.shop.command"), "mysqldump file 10");
    assert_eq!(by_file("sets.shop.hooks.after"), "curl file 12");
    assert_eq!(by_file("sets.shop.schedule"), "hourly default");
    assert_eq!(by_file("retry_for"), "5m default");
    let variables = [
        ("HOLDALL_REPOSITORY", "/env"),
        ("HOLDALL_PASSWORD", "geheim"),
        ("HOLDALL_RETRY_FOR", "1h"),
    ];
    let by_environment = shown(&[], &variables);
    assert_eq!(by_environment("repository"), "/env environment HOLDALL_REPOSITORY");
    assert_eq!(by_environment("password"), "not shown environment HOLDALL_PASSWORD");
    assert_eq!(by_environment("retry_for"), "1h environment HOLDALL_RETRY_FOR");
    let password = machine.path("password");
    fs::write(&password, "geheim").unwrap();
    let by_flags = shown(&["-r", "nas", "--password-file", text(&password)], &variables);
    assert_eq!(by_flags("password"), format!("{} flag --password-file", text(&password)));
    assert!(by_flags("repository").ends_with(" flag -r"));
    assert_eq!(shown(&["-r", "nas"], &[])("password"), "pass file 7");
    let words = machine.ok(["config", "show"]).stdout;
    assert!(words.contains("/mnt/usb  (config.toml, line 2)"), "{words}");
}
