//! `holdall config generate`.

use anyhow::Result;

use crate::exit::Exit;
use crate::terminal::output::plain;

/// What is printed.
const EXAMPLE: &str = include_str!("../../config/example.toml");

/// Prints an example of config.toml that explains each key, and sets none
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall config generate > ~/.config/holdall/config.toml

Exit codes: 0 done, 1 failed, 2 wrong usage")]
pub(crate) struct Args {}

pub(crate) fn run() -> Result<Exit> {
    plain(EXAMPLE.trim_end())?;
    Ok(Exit::Done)
}
