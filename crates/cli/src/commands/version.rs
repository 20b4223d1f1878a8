//! `holdall version`.

use anyhow::Result;
use serde::Serialize;

use crate::app::App;
use crate::exit::Exit;

/// Says which holdall this is
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall version --json

Exit codes: 0 done, 2 wrong usage")]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args, app: &App) -> Result<Exit> {
    #[derive(Serialize)]
    struct Version {
        version: &'static str,
        os: &'static str,
        arch: &'static str,
    }
    let version = Version {
        version: env!("CARGO_PKG_VERSION"),
        os: std::env::consts::OS,
        arch: std::env::consts::ARCH,
    };
    app.output
        .result(format_args!("holdall {} ({} {})", version.version, version.os, version.arch))?;
    app.output.object("version", &version)?;
    Ok(Exit::Done)
}
