//! `cargo xtask torture`: what takes far longer than `test`, and wants a computer of its own.

use anyhow::{Result, bail};

use crate::{cargo, check, components, lab};

/// How often client or server is killed.
const KILLS: &str = "50";
/// How much the backup has that is killed: 1 GB; `cargo xtask test` takes far less.
const KILL_BYTES: &str = "1000000000";

/// Runs the long variants of the tests that kill processes, or the comparison that `args` names.
pub(crate) fn run(args: &[String]) -> Result<()> {
    match args {
        [] => kill(),
        [what, rest @ ..] if what == "lab" && rest.len() < 2 => {
            lab::run(rest.first().map(String::as_str))
        }
        _ => bail!("torture takes nothing, or: lab [DIR]"),
    }
}

/// Kills processes on a release build.
fn kill() -> Result<()> {
    components::ensure()?;
    let args = ["test", "--release", "--locked", "--package", "holdall", "--test", "it", "kill"];
    check(cargo(&args).env("HOLDALL_KILLS", KILLS).env("HOLDALL_KILL_BYTES", KILL_BYTES))?;
    let args =
        ["test", "--release", "--locked", "--package", "holdall-engine", "--test", "it", "year"];
    let args = [&args[..], &["--", "--nocapture"]].concat();
    check(cargo(&args).env("HOLDALL_YEAR_DAYS", "365").env("HOLDALL_YEAR_HOURS", "1"))
}
