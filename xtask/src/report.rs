//! What a run of the tests found and how long it took.
//!
//! nextest writes down each test in a JUnit file, and `.ci/run` what its steps took. The closing line counts
//! the tests, so that a run of none does not look like a success.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use roxmltree::{Document, Node};

use crate::root;

/// How many of the slowest tests are printed.
const SLOWEST: usize = 20;
/// What a test says that leaves something out (`holdall_testkit::is_there`).
const LEFT_OUT: &str = "not tested, since this is missing: ";
/// Where `.ci/run` notes its steps: seconds, a tab, the step.
const CI_STEPS: &str = "target/ci-steps.tsv";

/// How the tests of a run ended.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    /// Seconds and name of each test.
    times: Vec<(f64, String)>,
    /// What tests left out, and which.
    left_out: Vec<(String, String)>,
}

impl Report {
    /// Forgets the last run, so that it is not taken for the next one.
    pub(crate) fn remove_last() -> Result<()> {
        match fs::remove_file(file()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// What nextest wrote down of the last run; nothing if it ran no test.
    pub(crate) fn last() -> Result<Self> {
        let Ok(text) = fs::read_to_string(file()) else { return Ok(Self::default()) };
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self> {
        let document = Document::parse(text).context("the JUnit report of nextest")?;
        let mut report = Self::default();
        for test in document.descendants().filter(|node| node.has_tag_name("testcase")) {
            report.add(&test);
        }
        Ok(report)
    }

    fn add(&mut self, test: &Node<'_, '_>) {
        let attribute = |name| test.attribute(name).unwrap_or_default();
        let name = format!("{} {}", attribute("classname"), attribute("name"));
        let is_failure = |node: Node<'_, '_>| matches!(node.tag_name().name(), "failure" | "error");
        match test.children().any(is_failure) {
            true => self.failed += 1,
            false => self.passed += 1,
        }
        let said = test.descendants().filter(Node::is_text).filter_map(|node| node.text());
        let left_out = said.flat_map(str::lines).filter_map(|line| line.strip_prefix(LEFT_OUT));
        self.left_out.extend(left_out.map(|what| (what.to_owned(), name.clone())));
        self.times.push((attribute("time").parse().unwrap_or_default(), name));
    }

    /// Counts what `cargo test` said of the tests in documents.
    pub(crate) fn of_documents(said: &str) -> Self {
        let count = |line: &str, what: &str| -> usize {
            let words: Vec<&str> = line.split([' ', ';']).collect();
            let at = words.iter().position(|word| *word == what);
            at.and_then(|at| words.get(at.checked_sub(1)?)?.parse().ok()).unwrap_or(0)
        };
        let results = || said.lines().filter(|line| line.starts_with("test result: "));
        Self {
            passed: results().map(|line| count(line, "passed")).sum(),
            failed: results().map(|line| count(line, "failed")).sum(),
            ..Self::default()
        }
    }

    /// Prints what the tests left out for want of something.
    pub(crate) fn print_left_out(&self) {
        for (what, test) in &self.left_out {
            println!("{test}: {LEFT_OUT}{what}");
        }
    }

    pub(crate) fn print_slowest(&self) {
        let mut times: Vec<_> = self.times.iter().collect();
        times.sort_by(|one, other| other.0.total_cmp(&one.0));
        println!("\nthe slowest tests, in seconds");
        for (seconds, name) in times.into_iter().take(SLOWEST) {
            println!("{seconds:8.1}  {name}");
        }
    }
}

/// Where nextest writes the report of its default profile.
fn file() -> PathBuf {
    root().join("target/nextest/default/junit.xml")
}

/// What the steps of this run took.
#[derive(Debug, Default)]
pub(crate) struct Steps(Vec<(f64, &'static str)>);

impl Steps {
    /// Does a step.
    pub(crate) fn step<T>(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let began = Instant::now();
        let done = work()?;
        self.0.push((began.elapsed().as_secs_f64(), name));
        Ok(done)
    }

    /// Prints them, behind those that the last `.ci/run` began with.
    pub(crate) fn print(&self) {
        println!("\nthe steps of the last .ci/run and of this, in seconds");
        let before = fs::read_to_string(root().join(CI_STEPS)).unwrap_or_default();
        for (seconds, step) in before.lines().filter_map(|line| line.split_once('\t')) {
            println!("{seconds:>8}  {step}");
        }
        for (seconds, step) in &self.0 {
            println!("{seconds:8.0}  cargo xtask test: {step}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JUNIT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="2" failures="1" errors="0" time="3.5">
  <testsuite name="holdall::it" tests="2" disabled="0" errors="0" failures="1">
    <testcase name="kill::one" classname="holdall::it" time="2.500">
      <system-err>not tested, since this is missing: strace &amp; more</system-err>
    </testcase>
    <testcase name="soak::other" classname="holdall::it" time="1.000">
      <failure type="test failure">it panicked</failure>
    </testcase>
  </testsuite>
</testsuites>"#;

    #[test]
    fn a_report_counts_tests_and_says_what_they_left_out() {
        let report = Report::parse(JUNIT).unwrap();
        assert_eq!((report.passed, report.failed), (1, 1));
        assert_eq!(report.times[0], (2.5, "holdall::it kill::one".into()));
        assert_eq!(report.left_out, [("strace & more".into(), "holdall::it kill::one".into())]);
    }

    #[test]
    fn tests_in_documents_are_counted() {
        let said = "test result: ok. 3 passed; 0 failed; 0 ignored\nx\n\
                    test result: FAILED. 2 passed; 1 failed; 0 ignored\n";
        let report = Report::of_documents(said);
        assert_eq!((report.passed, report.failed), (5, 1));
    }
}
