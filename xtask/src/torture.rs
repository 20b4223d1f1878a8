//! `cargo xtask torture`: the tests that kill processes, many more times than `test` does.

use anyhow::Result;

use crate::{cargo, check, components};

/// How often client and server are killed; `cargo xtask test` does it far less often.
const KILLS: &str = "500";

/// Runs the long variants on a release build.
pub(crate) fn run() -> Result<()> {
    components::ensure()?;
    let args = ["test", "--release", "--locked", "--package", "holdall", "--test", "it", "kill"];
    check(cargo(&args).env("HOLDALL_KILLS", KILLS))
}
