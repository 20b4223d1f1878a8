//! Who may depend on whom: the table of crates as a check, so that layering is not a wish.
//!
//! The edges come from `cargo metadata --no-deps`, so that optional, renamed and target-specific
//! dependencies count too. Build dependencies count as normal ones. The promise behind the table
//! is that nothing that the server links can reach keys or names; that is checked a second time,
//! over paths of any length, so that a mistake in the table itself cannot break it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::cargo;

const FORMAT: &str = "holdall-format";
const CRYPTO: &str = "holdall-crypto";
const TREE: &str = "holdall-tree";
const PROTOCOL: &str = "holdall-protocol";
const REPOSITORY: &str = "holdall-repository";
const ENGINE: &str = "holdall-engine";
const METER: &str = "holdall-meter";
const PAGES: &str = "holdall-pages";
const LAB: &str = "holdall-lab";
const DIAGNOSIS: &str = "holdall-diagnosis";
const DISKS: &str = "holdall-disks";
const STATE: &str = "holdall-state";
const BROWSE: &str = "holdall-browse";
const AGENT: &str = "holdall-agent";
const IMPORT: &str = "holdall-import";
const MOUNT: &str = "holdall-mount";
const DISCOVERY: &str = "holdall-discovery";
const SERVER: &str = "holdall-server";
const CLI: &str = "holdall";
const SYS: &str = "holdall-sys";
const TESTKIT: &str = "holdall-testkit";
/// Measures what is built, and is no part of it.
const BENCH: &str = "holdall-bench";

const PRODUCT: [&str; 21] = [
    FORMAT, CRYPTO, TREE, PROTOCOL, REPOSITORY, ENGINE, METER, PAGES, LAB, DIAGNOSIS, DISKS, STATE,
    BROWSE, AGENT, IMPORT, MOUNT, DISCOVERY, SERVER, CLI, SYS, TESTKIT,
];

/// Crates that work without keys, over any number of steps.
const KEYLESS: [&str; 9] =
    [SERVER, REPOSITORY, PROTOCOL, METER, PAGES, LAB, AGENT, DISCOVERY, DISKS];
/// Crates that hold keys or names.
const KEYED: [&str; 8] = [CRYPTO, TREE, ENGINE, DIAGNOSIS, STATE, BROWSE, IMPORT, MOUNT];

/// Who may depend on `package`; the empty list means only in tests.
fn dependents(package: &str) -> &'static [&'static str] {
    match package {
        FORMAT | SYS => &PRODUCT,
        CRYPTO => &[TREE, ENGINE, STATE, CLI],
        TREE => &[ENGINE],
        PROTOCOL => &[REPOSITORY, ENGINE, DIAGNOSIS, STATE, SERVER, CLI],
        REPOSITORY => &[SERVER, ENGINE, STATE, CLI],
        METER => &[PROTOCOL, REPOSITORY, ENGINE, LAB, DIAGNOSIS, DISKS, STATE, BROWSE, SERVER, CLI],
        PAGES => &[LAB, ENGINE, BROWSE, SERVER, CLI],
        LAB => &[DIAGNOSIS, DISKS, STATE, SERVER, CLI],
        ENGINE => &[DIAGNOSIS, STATE, BROWSE, IMPORT, MOUNT, CLI],
        DIAGNOSIS => &[STATE, CLI],
        AGENT => &[STATE, CLI],
        DISKS | STATE | BROWSE | IMPORT | MOUNT | DISCOVERY | SERVER => &[CLI],
        TESTKIT => &[BENCH],
        _ => &[],
    }
}

/// Whether the tests of `from` may use `to`.
fn allowed_in_tests(from: &str, to: &str) -> bool {
    match from {
        ENGINE | CLI => true,
        SERVER | REPOSITORY | PROTOCOL => {
            [FORMAT, SYS, TESTKIT, PROTOCOL, REPOSITORY].contains(&to)
        }
        _ => to == TESTKIT || allowed(from, to),
    }
}

fn allowed(from: &str, to: &str) -> bool {
    dependents(to).contains(&from)
}

/// A dependency of one package of the workspace on another.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Edge {
    from: String,
    to: String,
    in_tests: bool,
}

/// Checks the workspace and prints what breaks the table.
pub(crate) fn run() -> Result<()> {
    let edges = edges(&metadata()?)?;
    let problems = problems(&edges);
    for problem in &problems {
        println!("{problem}");
    }
    if !problems.is_empty() {
        bail!("{} dependencies break the layers", problems.len());
    }
    println!("layers: {} dependencies between our packages, all allowed", edges.len());
    Ok(())
}

pub(crate) fn metadata() -> Result<Value> {
    let output = cargo(&["metadata", "--no-deps", "--format-version", "1", "--locked"])
        .output()
        .context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")
}

/// The dependencies between packages of the workspace.
fn edges(metadata: &Value) -> Result<Vec<Edge>> {
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let names: BTreeSet<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    let mut edges = Vec::new();
    for package in packages {
        let from = package["name"].as_str().context("a package without a name")?;
        let dependencies = package["dependencies"].as_array();
        for dependency in dependencies.with_context(|| format!("{from} lists no dependencies"))? {
            let to = dependency["name"].as_str().context("a dependency without a name")?;
            if names.contains(to) {
                let in_tests = dependency["kind"] == "dev";
                edges.push(Edge { from: from.to_owned(), to: to.to_owned(), in_tests });
            }
        }
    }
    Ok(edges)
}

/// Every dependency that breaks the table, and every path by which keyless code reaches keys.
fn problems(edges: &[Edge]) -> Vec<String> {
    let mut problems = Vec::new();
    for Edge { from, to, in_tests } in edges {
        let fine = allowed(from, to) || (*in_tests && allowed_in_tests(from, to));
        if !fine {
            let how = if *in_tests { "in tests, " } else { "" };
            problems.push(format!("{from} depends on {to}: {how}not allowed"));
        }
    }
    for keyless in KEYLESS {
        let reached = reachable(edges, keyless);
        for (keyed, via) in reached.iter().filter(|(name, _)| KEYED.contains(name)) {
            problems.push(format!("{keyless} reaches {keyed} (by way of {via})"));
        }
    }
    problems
}

/// All packages that `start` reaches through normal dependencies, with the last step to each.
fn reachable<'a>(edges: &'a [Edge], start: &'a str) -> BTreeMap<&'a str, &'a str> {
    let mut reached = BTreeMap::new();
    let mut open = vec![start];
    while let Some(from) = open.pop() {
        for edge in edges.iter().filter(|edge| edge.from == from && !edge.in_tests) {
            if !reached.contains_key(edge.to.as_str()) {
                reached.insert(edge.to.as_str(), from);
                open.push(&edge.to);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: &str, to: &str, in_tests: bool) -> Edge {
        Edge { from: from.to_owned(), to: to.to_owned(), in_tests }
    }

    fn workspace_with(added: Edge) -> Vec<String> {
        let mut edges = edges(&metadata().unwrap()).unwrap();
        edges.push(added);
        problems(&edges)
    }

    #[test]
    fn the_workspace_keeps_its_layers() {
        let edges = edges(&metadata().unwrap()).unwrap();
        assert!(edges.contains(&edge(CLI, SERVER, false)), "metadata was read");
        assert_eq!(problems(&edges), Vec::<String>::new());
    }

    #[test]
    fn an_added_forbidden_dependency_fails() {
        let problems = workspace_with(edge(SERVER, CRYPTO, false));
        assert_eq!(
            problems,
            [
                "holdall-server depends on holdall-crypto: not allowed",
                "holdall-server reaches holdall-crypto (by way of holdall-server)",
            ]
        );
    }

    #[test]
    fn every_dependency_that_the_table_does_not_list_fails() {
        for from in PRODUCT {
            for to in PRODUCT.iter().filter(|to| !allowed(from, to)) {
                let problems = workspace_with(edge(from, to, false));
                assert!(!problems.is_empty(), "{from} -> {to}");
            }
        }
    }

    #[test]
    fn keys_are_found_behind_any_number_of_steps() {
        let edges = [
            edge(SERVER, REPOSITORY, false),
            edge(REPOSITORY, "holdall-shim", false),
            edge("holdall-shim", TREE, false),
        ];
        let problems = problems(&edges);
        let expected = "holdall-server reaches holdall-tree (by way of holdall-shim)";
        assert!(problems.contains(&expected.to_owned()), "{problems:?}");
    }

    #[test]
    fn testkit_is_for_tests_only() {
        assert!(!workspace_with(edge(ENGINE, TESTKIT, false)).is_empty());
        assert_eq!(workspace_with(edge(FORMAT, TESTKIT, true)), Vec::<String>::new());
    }

    #[test]
    fn tests_of_keyless_crates_have_no_keys_either() {
        for from in [SERVER, REPOSITORY, PROTOCOL] {
            for to in KEYED {
                assert!(!workspace_with(edge(from, to, true)).is_empty(), "{from} -> {to}");
            }
            for to in [FORMAT, TESTKIT, PROTOCOL, REPOSITORY] {
                assert_eq!(workspace_with(edge(from, to, true)), Vec::<String>::new());
            }
        }
    }

    #[test]
    fn tests_of_the_engine_and_the_command_line_may_use_everything() {
        for from in [ENGINE, CLI] {
            for to in PRODUCT {
                assert_eq!(workspace_with(edge(from, to, true)), Vec::<String>::new());
            }
        }
    }

    #[test]
    fn a_build_dependency_counts_as_a_normal_one() {
        let metadata = serde_json::json!({ "packages": [
            { "name": SERVER, "dependencies": [{ "name": CRYPTO, "kind": "build" }] },
            { "name": CRYPTO, "dependencies": [{ "name": "serde", "kind": null }] },
        ]});
        let edges = edges(&metadata).unwrap();
        assert_eq!(edges, [edge(SERVER, CRYPTO, false)]);
        assert!(!problems(&edges).is_empty());
    }
}
