//! `cargo xtask bench`: builds the product and the benchmark in release mode, and runs it.

use anyhow::Result;

use crate::{cargo, check};

const RELEASE: [&str; 2] = ["--release", "--locked"];

/// Measures the release build with `args` (data sets, `--against`, `--link`, ...), or makes the
/// report of what was measured, for which nothing has to be built.
pub(crate) fn run(args: &[String]) -> Result<()> {
    if args.first().is_none_or(|verb| verb != "report") {
        check(cargo(&["build", "--package", "holdall"]).args(RELEASE))?;
    }
    check(
        cargo(&["run", "--quiet", "--package", "holdall-bench"]).args(RELEASE).arg("--").args(args),
    )
}
