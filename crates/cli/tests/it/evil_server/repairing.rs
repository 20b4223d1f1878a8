//! Lies of a second repository that a damaged one is to be repaired from.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::proxy::{Lie, honest};
use super::stage::Stage;
use super::{RESTORE, Row, fetching};
use crate::house::{Outcome, files_below, text};

/// A directory that has copies of what the server has, and lost all contents.
struct Damaged {
    stage: Stage,
    repo: PathBuf,
}

impl Damaged {
    fn new() -> Self {
        let stage = Stage::new();
        let [repo, password, kit] =
            ["damaged", "password", "kit"].map(|name| stage.desk.path(name));
        fs::write(&password, "correct horse").unwrap();
        let at = ["-r", text(&repo), "--recovery-kit", text(&kit)];
        stage.desk.init(&[&["--password-file", text(&password)], &at[..]].concat());
        // From now on without a password, which takes its time.
        stage.desk.ok([&["pair"], &at[..]].concat());
        let damaged = Self { stage, repo };
        damaged.run(&damaged.repo, &["copy", "--from", &damaged.server()]).expect(0);
        let contents = |path: &PathBuf| {
            text(path).contains("chunks.") && path.extension().is_some_and(|e| e == "payload")
        };
        for payload in files_below(&damaged.repo).into_iter().filter(contents) {
            let zeros = vec![0; fs::metadata(&payload).unwrap().len() as usize];
            fs::write(payload, zeros).unwrap();
        }
        damaged.run(&damaged.repo, &["check", "--repair"]).expect(20);
        damaged
    }

    fn server(&self) -> String {
        format!("https://{}", self.stage.evil.address())
    }

    fn run(&self, repo: &Path, args: &[&str]) -> Outcome {
        let at = ["-r", text(repo), "--json"];
        self.stage.desk.run_by(&["timeout", "120"], [args, &at[..]].concat())
    }

    fn repair(&self, repo: &Path, lie: Lie) -> Outcome {
        self.stage.evil.lie(lie);
        let repaired = self.run(repo, &["check", "--repair", "--from", &self.server()]);
        self.stage.evil.lie(honest());
        repaired
    }

    /// Repairs a copy from a server that lies, and then from one that does not.
    fn hold(&self, row: &Row) {
        let (name, repo) = (row.name, self.stage.desk.path("row"));
        let _ = fs::remove_dir_all(&repo);
        assert!(
            Command::new("cp").arg("-a").arg(&self.repo).arg(&repo).status().unwrap().success()
        );
        let lied = self.repair(&repo, (row.lie)(&self.stage));
        assert!(matches!(lied.code, Some(1 | 20)), "{name}: {:?} {}", lied.code, lied.stdout);
        assert!(!lied.stderr.contains("panicked"), "{name}: {}", lied.stderr);
        // Whatever was put is what its id says.
        let verified = self.run(&repo, &["check", "--verify", "all"]);
        let summary = verified.summary();
        let found = summary["damaged"].as_array().unwrap();
        assert!(!found.is_empty(), "{name}: nothing is lost");
        assert!(found.iter().all(|damage| damage["kind"] == "path"), "{name}: {summary}");

        let repaired = self.repair(&repo, honest());
        assert_eq!(repaired.code, Some(0), "{name}: {}", repaired.stdout);
    }
}

#[test]
fn a_second_repository_that_lies_puts_nothing_false_into_the_first() {
    let damaged = Damaged::new();
    let lies = fetching::ROWS.iter().filter(|row| row.command == RESTORE && row.exit == 20);
    let fails = |row: &&Row| {
        let held = std::panic::AssertUnwindSafe(|| damaged.hold(row));
        std::panic::catch_unwind(held).is_err()
    };
    let (rows, failed): (Vec<_>, Vec<_>) = (lies.clone().collect(), lies.filter(fails).collect());
    let failed: Vec<_> = failed.iter().map(|row| row.name).collect();
    assert!(failed.is_empty(), "lies that do not hold: {failed:#?}");
    assert!(rows.len() > 20, "{} rows", rows.len());
}
