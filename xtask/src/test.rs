//! `cargo xtask test`: every test of the workspace, with the real components that they need.
//!
//! `cargo nextest` runs them, each in a process of its own, as `.config/nextest.toml` says. Long tests take a
//! slice of their work, which is another one for each commit (`holdall_testkit::Slice`).

use std::env;
use std::process::{Command, Stdio};
use std::thread::available_parallelism;

use anyhow::{Context, Result, bail};

use crate::report::{Report, Steps};
use crate::tools::NEXTEST;
use crate::{cargo, check, components, root};

/// Names the slice to the tests.
const SLICE: &str = "HOLDALL_SLICE";

/// Makes sure of the components, builds everything, then runs the tests that `args` choose, as `cargo nextest
/// run` takes them. All that fails is reported, not the first thing alone.
///
/// Without `args` it runs all tests, those in documents too, and proves that the benchmark runs, on its
/// smallest set; it judges no figure. `--times` prints the slowest tests and what each step took.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let (times, args): (Vec<&String>, Vec<&String>) =
        args.iter().partition(|arg| *arg == "--times");
    let mut steps = Steps::default();
    components::ensure()?;
    let nextest = NEXTEST.command(&["run", "--locked"])?;
    if args.is_empty() {
        steps.step("build", || {
            check(&mut cargo(&["build", "--workspace", "--bins", "--tests", "--locked"]))
        })?;
    }
    let report = steps.step("tests", || run_tests(nextest, &args))?;
    let mut documents = Report::default();
    if args.is_empty() {
        documents = steps.step("tests in documents", run_documents)?;
        steps.step("benchmark", || {
            check(Command::new(env::current_exe()?.with_file_name("holdall-bench")).arg("T0"))
        })?;
    }
    report.print_left_out();
    if !times.is_empty() {
        report.print_slowest();
        steps.print();
    }
    let (passed, failed) = (report.passed + documents.passed, report.failed + documents.failed);
    println!("\n{passed} passed, {failed} failed");
    match (passed, failed) {
        (_, 1..) => bail!("{failed} tests failed"),
        (0, 0) => bail!("no test ran"),
        _ => Ok(()),
    }
}

/// Runs the tests that `args` choose.
fn run_tests(mut nextest: Command, args: &[&String]) -> Result<Report> {
    // The packages that are named, or all.
    let packages = ["-p", "--package", "--workspace"];
    if !args.iter().any(|arg| packages.iter().any(|option| arg.starts_with(option))) {
        nextest.arg("--workspace");
    }
    let slice = slice()?;
    println!("{SLICE}={slice} cargo xtask test repeats the slices of the long tests");
    nextest.args(args).env(SLICE, slice).envs(more_threads());
    Report::remove_last()?;
    let ended = nextest.status().with_context(|| format!("cannot run {nextest:?}"))?;
    let report = Report::last().with_context(|| format!("{nextest:?}: {ended}"))?;
    if !ended.success() && report.failed == 0 {
        bail!("{nextest:?}: {ended}");
    }
    Ok(report)
}

/// Runs the tests in documents, which nextest does not.
fn run_documents() -> Result<Report> {
    let mut command = cargo(&["test", "--doc", "--workspace", "--locked", "--no-fail-fast"]);
    let output = command.stderr(Stdio::inherit()).output().context("cannot run cargo test")?;
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    let report = Report::of_documents(&said);
    if !output.status.success() && report.failed == 0 {
        bail!("{command:?}: {}", output.status);
    }
    Ok(report)
}

/// Which slice of the long tests is taken: what the environment says, or one that follows from the commit.
#[expect(clippy::disallowed_methods, reason = "a build tool is told by the environment")]
fn slice() -> Result<String> {
    if let Ok(told) = env::var(SLICE) {
        return Ok(told);
    }
    let head = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root()).output();
    let head = head.context("cannot run git")?.stdout;
    // Outside a repository there is no commit.
    let number = str::from_utf8(&head).ok().and_then(|hash| hash.get(..8));
    Ok(number.and_then(|hex| u32::from_str_radix(hex, 16).ok()).unwrap_or(0).to_string())
}

/// Twice as many tests at once as there are cores, unless the environment says how many: many wait for a process, a
/// disk or a clock.
#[expect(clippy::disallowed_methods, reason = "a build tool is told by the environment")]
fn more_threads() -> Option<(&'static str, String)> {
    const THREADS: &str = "NEXTEST_TEST_THREADS";
    if env::var_os(THREADS).is_some() {
        return None;
    }
    let cores = available_parallelism().map_or(1, usize::from);
    Some((THREADS, (2 * cores).to_string()))
}
