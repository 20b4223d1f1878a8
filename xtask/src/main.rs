//! What a person or a machine does with this workspace beyond building it: `cargo xtask VERB`.
//!
//! One file for each verb. A verb prints what it finds and fails if that is not right; nothing here
//! is part of the product.

#![allow(clippy::print_stdout, reason = "a build tool talks to the terminal")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

mod bench;
mod circles;
mod components;
mod deny;
mod fresh_debian;
mod fuzz;
mod layers;
mod named_tests;
mod packages;
mod pebble;
mod report;
mod test;
mod thin;
mod tidy;
mod tools;
mod torture;

const USAGE: &str = "\
usage: cargo xtask VERB

  test [ARGS] [--times]
                  install or name what the real components need, then run every test, or those that
                  ARGS choose, as `cargo nextest run` takes them; --times: what took how long
  layers          who may depend on whom, circles of modules, and what the command line leaves to libraries
  tidy            hygiene: file sizes, headers, reasons for dependencies
  deny            licences, bans and sources of dependencies
  bench [ARGS]    measure holdall, alone or against its peers, or make the report of that;
                  `cargo xtask bench --help`
  fuzz [TARGET] [--seconds N]
                  hostile input for every decoder, or for one; needs a nightly compiler
  torture [PART ...] [--budget 60m]
                  the whole of the long tests, or of some: kill, kill-often, power, rot, calls,
                  soak, year, ...; with a budget as much as fits, and next time what comes after
  torture lab [DIR]
                  the lab's figures beside those of fio and iperf3, in DIR";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> Result<()> {
    let (verb, rest) = args.split_first().context(USAGE)?;
    match verb.as_str() {
        "test" => test::run(rest),
        "layers" => layers::run().and_then(|()| circles::run()).and_then(|()| thin::run()),
        "tidy" => tidy::run(),
        "deny" => deny::run(),
        "bench" => bench::run(rest),
        "fuzz" => fuzz::run(rest),
        "torture" => torture::run(rest),
        _ => bail!("no verb {verb:?}\n\n{USAGE}"),
    }
}

/// The workspace's root folder.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// A `cargo` command with `args` that runs in the workspace's root.
fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(args).current_dir(root());
    command
}

/// Runs `command` and fails unless it succeeds.
fn check(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}");
    let status = command.status().with_context(|| format!("cannot run {shown}"))?;
    if !status.success() {
        bail!("{shown} failed: {status}");
    }
    Ok(())
}
