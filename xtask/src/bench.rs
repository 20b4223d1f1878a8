//! `cargo xtask bench`: builds the product and the benchmark as they are shipped, and runs it.

use anyhow::Result;

use crate::{cargo, check};

const DIST: [&str; 3] = ["--profile", "dist", "--locked"];

/// Measures what is shipped with `args` (data sets, `--against`, `--link`, ...), or makes the
/// report of what was measured, for which nothing has to be built.
pub(crate) fn run(args: &[String]) -> Result<()> {
    if args.first().is_none_or(|verb| verb != "report") {
        check(cargo(&["build", "--package", "holdall"]).args(DIST))?;
    }
    check(cargo(&["run", "--quiet", "--package", "holdall-bench"]).args(DIST).arg("--").args(args))
}
