//! `holdall lab disk`.

use std::path::PathBuf;

use anyhow::Result;

use crate::app::App;
use crate::exit::{Exit, Refusal};

/// Measures the disk that a directory lies on
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall lab disk /mnt/usb

Exit codes: 0 measured, 1 failed, 2 wrong usage, 4 measured, and below --fail-below, 130 interrupted")]
pub(crate) struct Args {
    /// A directory on the disk to measure
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

pub(crate) fn run(args: &Args, _app: &App) -> Result<Exit> {
    let message = format!("{} can not be measured yet", args.dir.display());
    Err(Refusal::new(Exit::Failed, message).into())
}
