//! `cargo xtask test`: every test of the workspace, with the real components that they need.

use anyhow::Result;

use crate::{cargo, check, components};

/// Makes sure of the components, then runs `cargo test` with `args` added.
///
/// Without `args` it also proves that the benchmark runs, on its smallest set; it judges no figure.
pub(crate) fn run(args: &[String]) -> Result<()> {
    components::ensure()?;
    check(cargo(&["test", "--workspace", "--locked"]).args(args))?;
    if args.is_empty() {
        check(&mut cargo(&["build", "--locked", "--package", "holdall"]))?;
        check(&mut cargo(&[
            "run",
            "--quiet",
            "--locked",
            "--package",
            "holdall-bench",
            "--",
            "T0",
        ]))?;
    }
    Ok(())
}
