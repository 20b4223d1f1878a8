//! `cargo xtask test`: every test of the workspace, with the real components that they need.

use std::process::Command;
use std::thread::available_parallelism;

use anyhow::Result;

use crate::{cargo, check, components};

/// Makes sure of the components, then runs `cargo test` with `args` added. All that fails is told, not
/// the first thing alone.
///
/// Without `args` it also proves that the benchmark runs, on its smallest set; it judges no figure.
pub(crate) fn run(args: &[String]) -> Result<()> {
    components::ensure()?;
    check(
        cargo(&["test", "--workspace", "--locked", "--no-fail-fast"])
            .args(args)
            .envs(more_threads()),
    )?;
    if args.is_empty() {
        // Of the whole workspace, as the tests: for one package alone nearly everything would be compiled anew.
        check(&mut cargo(&["build", "--workspace", "--bins", "--tests", "--locked"]))?;
        check(Command::new(std::env::current_exe()?.with_file_name("holdall-bench")).arg("T0"))?;
    }
    Ok(())
}

/// Half as many threads again as there are cores, unless somebody chose: many tests wait for a process, a disk
/// or a clock.
#[expect(clippy::disallowed_methods, reason = "a build tool is told by the environment")]
fn more_threads() -> Option<(&'static str, String)> {
    const THREADS: &str = "RUST_TEST_THREADS";
    if std::env::var_os(THREADS).is_some() {
        return None;
    }
    let cores = available_parallelism().map_or(1, usize::from);
    Some((THREADS, (cores + cores.div_ceil(2)).to_string()))
}
