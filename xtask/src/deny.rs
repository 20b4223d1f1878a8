//! `cargo xtask deny`: licences, bans and sources of every dependency, by `deny.toml`.
//!
//! The advisory database is left out because it cannot be reached everywhere.

use anyhow::Result;

use crate::check;
use crate::tools::DENY;

/// Installs cargo-deny where it is missing, then checks.
pub(crate) fn run() -> Result<()> {
    check(&mut DENY.command(&[
        "--locked",
        "check",
        "--hide-inclusion-graph",
        "licenses",
        "bans",
        "sources",
    ])?)
}
