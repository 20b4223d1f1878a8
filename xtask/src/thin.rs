//! The command line computes nothing: it reads arguments, speaks to a terminal and ends with an exit code.
//!
//! What only a library may do, it does with words that a file of `crates/cli/src` must not have, outside of tests. The
//! files that have such a word still are listed; none is added, and a file that lost it goes from the list. Nor may the
//! command line depend on a crate from elsewhere that is not for arguments, the terminal or the system.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::circles::without_tests;
use crate::layers::metadata;
use crate::{root, tidy};

/// A word, what it would mean, and the files that may have it.
struct Rule {
    words: &'static [&'static str],
    meaning: &'static str,
    still: &'static [&'static str],
}

const RULES: [Rule; 3] = [
    Rule {
        words: &["Deserialize", "serde_json::from_", "serde_json::to_", ".encode(", "::decode("],
        meaning: "a format belongs to the crate that keeps what has it",
        // The settings that people write, and the lines of `--json`.
        still: &[
            "config/agent.rs",
            "config/set.rs",
            "config/settings.rs",
            "config/time_span.rs",
            "terminal/output.rs",
        ],
    },
    Rule {
        words: &[
            "DefaultHasher",
            "RepositoryKeys",
            "SigningKey::from_",
            "sign_wrappings",
            "to_le_bytes",
        ],
        meaning: "hashing, deriving keys and signing belong to crypto, state and engine",
        still: &[],
    },
    Rule {
        words: &["read_dir(", "Dir::open", ".entries()", "HashMap", ".chunks("],
        meaning: "walking folders, joining lists and taking bytes apart belong to the engine",
        // Base64 of names in `--json`.
        still: &["terminal/output.rs"],
    },
];

/// What the command line takes from elsewhere.
const FROM_ELSEWHERE: &[&str] = &[
    // Arguments and settings.
    "clap",
    "clap_complete",
    "clap_mangen",
    "strsim",
    "toml",
    "jiff",
    // The terminal, and words and lines for it.
    "anyhow",
    "thiserror",
    "indicatif",
    "serde",
    "serde_json",
    "zeroize",
    // The system.
    "rustix",
    "signal-hook",
    "tempfile",
];

/// Checks every file, and what the crate depends on.
pub(crate) fn run() -> Result<()> {
    let files = files()?;
    let mut problems = problems(&RULES, &files);
    problems.extend(strangers(&metadata()?)?);
    problems.iter().for_each(|problem| println!("{problem}"));
    if !problems.is_empty() {
        bail!("{} times the command line does what a library is for", problems.len());
    }
    let still: BTreeSet<_> = RULES.iter().flat_map(|rule| rule.still).collect();
    println!("layers: {} files of the command line, {} with exceptions", files.len(), still.len());
    Ok(())
}

/// The code of every file, without tests, by its path in `crates/cli/src`.
fn files() -> Result<BTreeMap<String, String>> {
    let src = root().join("crates/cli/src");
    let mut paths = Vec::new();
    tidy::collect(&src, &mut paths)?;
    let read = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(&path).context("cannot read the command line")?;
        let name = path.strip_prefix(&src).unwrap_or(Path::new("")).display().to_string();
        Ok((name, without_tests(&text)))
    };
    paths.into_iter().map(read).collect()
}

/// Each word in a file that is not listed, and each listed file that has none.
fn problems(rules: &[Rule], files: &BTreeMap<String, String>) -> Vec<String> {
    let mut problems = Vec::new();
    for Rule { words, meaning, still } in rules {
        for (name, code) in files {
            let found = words.iter().find(|word| code.contains(*word));
            match (found, still.contains(&&name[..])) {
                (Some(word), false) => problems.push(format!("{name}: `{word}`: {meaning}")),
                (None, true) => problems
                    .push(format!("{name}: no such word: shorten a list in xtask/src/thin.rs")),
                _ => {}
            }
        }
        let gone = still.iter().filter(|name| !files.contains_key(**name));
        problems.extend(
            gone.map(|name| format!("{name} is gone: shorten a list in xtask/src/thin.rs")),
        );
    }
    problems
}

/// Dependencies from elsewhere that are not listed.
fn strangers(metadata: &Value) -> Result<Vec<String>> {
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let cli = packages.iter().find(|package| package["name"] == "holdall");
    let dependencies = cli.and_then(|cli| cli["dependencies"].as_array());
    let dependencies = dependencies.context("cargo metadata lists no command line")?;
    let names = dependencies
        .iter()
        .filter(|one| one["kind"].is_null())
        .filter_map(|one| one["name"].as_str());
    let strangers =
        names.filter(|name| !name.starts_with("holdall-") && !FROM_ELSEWHERE.contains(name));
    Ok(strangers
        .map(|name| format!("the command line depends on {name}: a library is for that"))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: [Rule; 1] = [Rule { words: &["hash("], meaning: "no", still: &["old.rs"] }];

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter().map(|(name, code)| ((*name).to_owned(), without_tests(code)));
        problems(&RULE, &files.collect())
    }

    #[test]
    fn the_command_line_computes_nothing_but_what_is_listed() {
        let files = files().unwrap();
        assert!(files.contains_key("main.rs"), "files were read");
        assert_eq!(problems(&RULES, &files), [""; 0]);
        assert_eq!(strangers(&metadata().unwrap()).unwrap(), [""; 0]);
    }

    #[test]
    fn a_word_in_a_file_that_is_not_listed_is_found_and_one_in_its_tests_is_not() {
        let old = ("old.rs", "hash(1)");
        assert_eq!(found(&[old, ("new.rs", "fn f() { hash(2) }")]), ["new.rs: `hash(`: no"]);
        assert_eq!(found(&[old, ("new.rs", "#[cfg(test)]\nmod tests { hash(2) }")]), [""; 0]);
    }

    #[test]
    fn the_list_only_gets_shorter() {
        assert!(found(&[("old.rs", "fn f() {}")])[0].contains("shorten"));
        assert!(found(&[])[0].contains("shorten"));
    }

    #[test]
    fn a_dependency_that_computes_is_found() {
        let dependency =
            |name: &str, kind: Value| serde_json::json!({ "name": name, "kind": kind });
        let dependencies = [
            dependency("clap", Value::Null),
            dependency("blake3", Value::Null),
            dependency("png", "dev".into()),
            dependency("holdall-engine", Value::Null),
        ];
        let metadata = serde_json::json!({ "packages": [{ "name": "holdall", "dependencies": dependencies }] });
        assert_eq!(
            strangers(&metadata).unwrap(),
            ["the command line depends on blake3: a library is for that"]
        );
    }
}
