//! `docs/web-security.md` names the test that holds each of its lines. A test that is renamed or gone is found here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The document, from the root.
pub(crate) const DOCUMENT: &str = "docs/web-security.md";

/// The tests that a text names: paths of modules in backticks, such as `web::asvs::no_form_is_taken`.
fn named(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().flat_map(|(at, line)| {
        let quoted = line.split('`').skip(1).step_by(2);
        quoted.filter(|name| name.contains("::")).map(move |name| (at + 1, name))
    })
}

/// The tests of a file, by their names alone.
fn tests_in(source: &str) -> impl Iterator<Item = &str> {
    source.split("#[test]\n").skip(1).filter_map(|rest| {
        let (_, behind) = rest.split_once("fn ")?;
        behind.split('(').next()
    })
}

/// Tests that are named and are not there, each as `LINE: what`. `files` are the sources with their texts.
pub(crate) fn missing(document: &str, files: &[(PathBuf, String)]) -> Vec<String> {
    let is_there = |name: &str| {
        let mut modules: Vec<_> = name.split("::").collect();
        let test = modules.pop().unwrap_or_default();
        modules.retain(|module| *module != "tests");
        files.iter().any(|(path, source)| {
            is_in(path, &modules)
                && source.contains(test)
                && tests_in(source).any(|one| one == test)
        })
    };
    let named: BTreeSet<_> = named(document).collect();
    let gone = named.into_iter().filter(|(_, name)| !is_there(name));
    gone.map(|(line, name)| format!("{line}: there is no test {name}")).collect()
}

/// Whether a file's path ends in these modules; a crate counts as one.
fn is_in(path: &Path, modules: &[&str]) -> bool {
    let path = path.with_extension("");
    let mut parts: Vec<_> = path.iter().filter_map(|part| part.to_str()).collect();
    parts.retain(|part| *part != "src");
    if matches!(parts.last(), Some(&("mod" | "lib"))) {
        parts.pop();
    }
    parts.ends_with(modules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_is_renamed_moved_or_no_test_is_missed() {
        let file = |path: &str, source: &str| (PathBuf::from(path), source.to_owned());
        let files = [
            file("crates/cli/tests/it/web/mod.rs", "#[test]\nfn a_b() {}\nfn helper() {}\n"),
            file("crates/pages/src/lib.rs", "#[test]\nfn e_f() {}\n"),
            file("crates/server/src/web/guard.rs", "    #[test]\n    fn c_d() {}\n"),
        ];
        let document = "| 1 | `web::a_b` | `no` | `pages::tests::e_f` |\n| 2 | `web::guard::tests::c_d`, `web::guard::a_b` |\n| 3 | `web::helper` `web::a` |\n";
        let gone = [
            "2: there is no test web::guard::a_b",
            "3: there is no test web::a",
            "3: there is no test web::helper",
        ];
        assert_eq!(missing(document, &files), gone);
    }
}
