//! `docs/reference.md` lists what the sources read: variables, and files of the state folder. Its other parts are made from
//! the code.

use std::fs;
use std::path::{Path, PathBuf};

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// What the first column of the page's tables has.
fn listed() -> Vec<String> {
    let page = fs::read_to_string(crates().parent().unwrap().join("docs/reference.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    rows.map(str::to_owned).collect()
}

/// Every source file below a folder, without its tests.
fn sources(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if !path.ends_with("cli/src/reference.rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.push(text.split("#[cfg(test)]\nmod tests").next().unwrap().to_owned());
        }
    }
    found
}

#[test]
fn every_variable_that_the_code_names_is_listed_and_no_other() {
    let sources = sources(&crates().join("cli/src"));
    let is_variable = |word: &&str| {
        let is_upper = word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
        *word == "HOME"
            || (is_upper && word.contains('_') && word.len() > 6 && !word.starts_with('_'))
    };
    let named = sources.iter().flat_map(|text| text.split('"')).filter(is_variable);
    // What cargo sets is read when holdall is compiled.
    let named: Vec<_> = named.filter(|word| !word.starts_with("CARGO_")).collect();
    assert!(named.len() > 15, "{named:?}");
    let listed = listed();
    for name in &named {
        assert!(listed.iter().any(|one| one == name), "{name} is not listed");
    }
    for name in listed.iter().filter(|name| name.starts_with("HOLDALL_")) {
        let stem = name.trim_end_matches("_FILE").trim_end_matches("_COMMAND");
        assert!(named.contains(&&name[..]) || named.contains(&stem), "{name} is read nowhere");
    }
}

#[test]
fn every_file_of_the_state_is_listed() {
    let sources = sources(&crates().join("state/src"));
    let joined = sources.iter().flat_map(|text| text.split("state.join(\"").skip(1));
    let names: Vec<_> = joined.filter_map(|rest| rest.split('"').next()).collect();
    assert!(names.len() > 5, "{names:?}");
    let listed = listed();
    for name in names {
        assert!(listed.iter().any(|row| row.starts_with(name)), "{name} is not listed");
    }
}
