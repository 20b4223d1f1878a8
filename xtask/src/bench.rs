//! `cargo xtask bench`: builds the product and the benchmark in release mode, and runs it.

use anyhow::Result;

use crate::{cargo, check};

const RELEASE: [&str; 2] = ["--release", "--locked"];

/// Measures the release build with `args` (data sets, `--binary`, `--work`, ...).
pub(crate) fn run(args: &[String]) -> Result<()> {
    check(cargo(&["build", "--package", "holdall"]).args(RELEASE))?;
    check(
        cargo(&["run", "--quiet", "--package", "holdall-bench"]).args(RELEASE).arg("--").args(args),
    )
}
