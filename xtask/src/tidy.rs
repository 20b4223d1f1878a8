//! Hygiene as a check in our own language: what a reviewer should not have to say.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::named_tests::{self, DOCUMENT};
use crate::root;

/// A file longer than this wants to be a folder.
const MAX_LINES: usize = 800;
/// Put together here, so that this file passes its own check.
const LEFTOVERS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];
const SKIPPED_TEST: &str = concat!("#[ign", "ore");

/// Checks every file of the workspace and prints what is wrong.
pub(crate) fn run() -> Result<()> {
    let root = root();
    let mut files = Vec::new();
    collect(&root, &mut files)?;
    let mut problems = Vec::new();
    let mut sources = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {file:?}"))?;
        let name = file.strip_prefix(&root).unwrap_or(file).display().to_string();
        problems.extend(problems_in(&name, &text).into_iter().map(|what| format!("{name}:{what}")));
        if name.ends_with(".rs") {
            sources.push((PathBuf::from(name), text));
        }
    }
    let document = fs::read_to_string(root.join(DOCUMENT)).context(DOCUMENT)?;
    let gone = named_tests::missing(&document, &sources);
    problems.extend(gone.into_iter().map(|what| format!("{DOCUMENT}:{what}")));
    for problem in &problems {
        println!("{problem}");
    }
    if !problems.is_empty() {
        bail!("{} untidy places", problems.len());
    }
    println!("tidy: {} files", files.len());
    Ok(())
}

/// Adds every text file of ours below `folder`, leaving out build outputs and hidden folders
/// except `.ci` and `.cargo`.
pub(crate) fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {folder:?}"))? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let hidden = name.starts_with('.') && !matches!(&*name, ".ci" | ".cargo");
        if hidden || name == "target" || name == "shared" {
            continue;
        }
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect(&entry.path(), files)?;
        } else if kind.is_file() && is_text(&entry.path()) {
            files.push(entry.path());
        }
    }
    Ok(())
}

fn is_text(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("rs" | "py" | "mjs" | "toml" | "md" | "sh"))
        || path.ends_with(".ci/run")
}

/// What is wrong in one file, each as `LINE: what`.
fn problems_in(name: &str, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for (at, line) in text.lines().enumerate() {
        for leftover in LEFTOVERS.iter().filter(|leftover| line.contains(*leftover)) {
            problems.push(format!("{}: {leftover} (finish it, or file an issue)", at + 1));
        }
        if name.ends_with(".rs") && line.contains(SKIPPED_TEST) {
            problems.push(format!("{}: a test that nobody runs (fix it, or delete it)", at + 1));
        }
    }
    if name.ends_with(".rs") {
        problems.extend(problems_in_source(text, "//!"));
    }
    if name.ends_with(".py") {
        let behind_the_program = text.strip_prefix("#!/usr/bin/env python3\n").unwrap_or(text);
        problems.extend(problems_in_source(behind_the_program, "\"\"\""));
    }
    if name.ends_with(".mjs") {
        problems.extend(problems_in_source(text, "// "));
    }
    if name == "Cargo.toml" {
        problems.extend(problems_in_dependencies(text));
    }
    problems
}

fn problems_in_source(text: &str, header: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let lines = text.lines().count();
    if lines > MAX_LINES {
        problems.push(format!("1: {lines} lines, at most {MAX_LINES} (make it a folder)"));
    }
    if !text.starts_with(header) {
        problems.push(format!("1: no module header (`{header}`: what this is and why)"));
    }
    problems
}

/// Dependencies of the workspace from elsewhere that say neither why they are there nor who keeps
/// them.
fn problems_in_dependencies(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut inside = false;
    for (at, line) in text.lines().enumerate() {
        if line.starts_with('[') {
            inside = line == "[workspace.dependencies]";
            continue;
        }
        let is_ours = line.contains("path = ");
        if !inside || line.trim().is_empty() || line.starts_with('#') || is_ours {
            continue;
        }
        let reason = line.rsplit_once("# ").map_or("", |(_, reason)| reason);
        if !reason.contains("; ") {
            problems.push(format!("{}: no `# why; who keeps it` after a dependency", at + 1));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tidy_file_has_no_problems() {
        assert_eq!(problems_in("crates/x/src/lib.rs", "//! Why.\nfn f() {}\n"), [""; 0]);
    }

    #[test]
    fn leftovers_and_skipped_tests_are_named_with_their_line() {
        let text = format!("//! Why.\n// {}: later\n{SKIPPED_TEST}]\n", LEFTOVERS[0]);
        let problems = problems_in("crates/x/src/lib.rs", &text);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].starts_with("2: ") && problems[1].starts_with("3: "));
        assert_eq!(problems_in("README.md", &format!("a\n{}\n", LEFTOVERS[1])).len(), 1);
    }

    #[test]
    fn long_files_and_files_without_a_header_are_named() {
        let long = format!("//! Why.\n{}", "\n".repeat(MAX_LINES));
        assert_eq!(problems_in("a.rs", &long).len(), 1);
        assert_eq!(problems_in("a.rs", &long[..long.len() - 1]), [""; 0]);
        assert_eq!(problems_in("a.rs", "fn f() {}\n").len(), 1);
        assert_eq!(problems_in("a.py", "import os\n").len(), 1);
        assert_eq!(problems_in("a.mjs", "import 'os';\n").len(), 1);
        let program = "#!/usr/bin/env python3\n\"\"\"Why.\"\"\"\n";
        assert_eq!(problems_in("a.py", program), [""; 0]);
    }

    #[test]
    fn a_dependency_says_why_and_who_keeps_it() {
        let manifest =
            |line: &str| format!("[workspace.dependencies]\n{line}\n[profile.dev]\nx = 1\n");
        let count = |line: &str| problems_in("Cargo.toml", &manifest(line)).len();
        assert_eq!(count("serde = \"1\"  # JSON; serde-rs"), 0);
        assert_eq!(count("holdall-lab = { path = \"crates/lab\" }"), 0);
        assert_eq!(count("serde = \"1\""), 1);
        assert_eq!(count("serde = \"1\"  # JSON"), 1);
    }

    #[test]
    fn the_workspace_is_walked_without_its_build_outputs() {
        let mut files = Vec::new();
        collect(&root(), &mut files).unwrap();
        assert!(files.iter().any(|file| file.ends_with("xtask/src/tidy.rs")));
        assert!(!files.iter().any(|file| file.starts_with(root().join("target"))));
    }
}
