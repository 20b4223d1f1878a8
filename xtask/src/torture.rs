//! `cargo xtask torture`: the tests that kill processes, on far more data than `test` takes.

use anyhow::Result;

use crate::{cargo, check, components};

/// How often client or server is killed.
const KILLS: &str = "50";
/// How much the backup has that is killed: 1 GB; `cargo xtask test` takes far less.
const KILL_BYTES: &str = "1000000000";

/// Runs the long variants on a release build.
pub(crate) fn run() -> Result<()> {
    components::ensure()?;
    let args = ["test", "--release", "--locked", "--package", "holdall", "--test", "it", "kill"];
    check(cargo(&args).env("HOLDALL_KILLS", KILLS).env("HOLDALL_KILL_BYTES", KILL_BYTES))?;
    let args =
        ["test", "--release", "--locked", "--package", "holdall-engine", "--test", "it", "year"];
    let args = [&args[..], &["--", "--nocapture"]].concat();
    check(cargo(&args).env("HOLDALL_YEAR_DAYS", "365").env("HOLDALL_YEAR_HOURS", "1"))
}
