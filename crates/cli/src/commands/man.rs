//! `holdall man`, for whoever makes packages: man pages from the very help that commands print.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::app::App;
use crate::exit::Exit;

/// Writes the man pages, one for each command, into a folder
#[derive(Debug, clap::Args)]
#[command(
    hide = true,
    after_help = "\
Example: holdall man /usr/local/share/man/man1

Exit codes: 0 done, 1 failed, 2 wrong usage"
)]
pub(crate) struct Args {
    /// The folder; made if it is not there
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    let what = || format!("cannot write man pages into {}", args.dir.display());
    std::fs::create_dir_all(&args.dir).with_context(what)?;
    let command = crate::command_line().disable_help_subcommand(true);
    clap_mangen::generate_to(command, &args.dir).with_context(what)?;
    app.output.say(format_args!("man pages are in {}", args.dir.display()))?;
    Ok(Exit::Done)
}
