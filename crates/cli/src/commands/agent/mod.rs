//! `holdall agent`: backs the sets of `config.toml` up. One file for each verb.

mod hooks;
mod run;

use anyhow::Result;
use clap::Subcommand;

use crate::app::App;
use crate::exit::Exit;

/// Backs up the sets of config.toml
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall agent run home

Exit codes: those of `holdall backup`")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Agent,
}

#[derive(Debug, Subcommand)]
enum Agent {
    Run(run::Args),
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    match &args.verb {
        Agent::Run(args) => run::run(args, app),
    }
}
