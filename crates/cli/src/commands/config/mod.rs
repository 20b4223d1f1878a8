//! `holdall config`: writes, checks and shows what is configured. One file for each verb.

mod generate;
mod show;
mod validate;

use anyhow::Result;
use clap::Subcommand;

use crate::app::App;
use crate::exit::Exit;

/// Prints an example of config.toml, checks it, or shows what counts
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall config validate

Exit codes: 0 done, 1 failed, 2 wrong usage, or something in config.toml is wrong")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Config,
}

#[derive(Debug, Subcommand)]
enum Config {
    Generate(generate::Args),
    Validate(validate::Args),
    Show(show::Args),
}

impl Args {
    /// Whether it needs settings that are right.
    pub(crate) fn needs_profile(&self) -> bool {
        matches!(self.verb, Config::Show(_))
    }
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    match &args.verb {
        Config::Generate(_) => generate::run(),
        Config::Validate(args) => validate::run(args, app),
        Config::Show(_) => show::run(app),
    }
}
