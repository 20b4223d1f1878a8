//! `cargo xtask deny`: licences, bans and sources of every dependency, by `deny.toml`.
//!
//! The advisory database is left out because it cannot be reached everywhere.

use std::process::Stdio;

use anyhow::Result;

use crate::{cargo, check};

/// Installs cargo-deny where it is missing, then checks.
pub(crate) fn run() -> Result<()> {
    let mut version = cargo(&["deny", "--version"]);
    let there = version.stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !there.is_ok_and(|status| status.success()) {
        check(&mut cargo(&["install", "cargo-deny", "--locked"]))?;
    }
    check(&mut cargo(&[
        "deny",
        "--locked",
        "check",
        "--hide-inclusion-graph",
        "licenses",
        "bans",
        "sources",
    ]))
}
