//! `holdall agent`: backs the sets of `config.toml` up by themselves. One file for each verb; `serve` is the agent itself.

mod asking;
mod hooks;
mod install;
mod pause;
mod plan;
mod resume;
mod run;
mod serve;
mod status;
mod trust;

use anyhow::Result;
use clap::Subcommand;

use crate::app::App;
use crate::exit::Exit;

/// Backs up the sets of config.toml by themselves
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples: holdall agent             (runs until it is stopped; `holdall status` and `holdall agent status` say more)
          holdall agent run home    (one backup, now)

Each set has a schedule, such as `hourly`, `daily` or `Mon..Fri 18:00`, by the calendar expressions of systemd; `hourly` without \
one. What was missed while the computer was off or asleep is made up for by one backup. A backup that failed for want of the \
server is tried again after a minute, then ever less often. The table [agent] says when it holds back.

Exit codes: 0 ended as it was asked to, 1 failed, 2 wrong usage, 11 another agent runs")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Agent>,
}

#[derive(Debug, Subcommand)]
enum Agent {
    Run(run::Args),
    Status(status::Args),
    Pause(pause::Args),
    Resume(resume::Args),
    Install(install::Args),
}

impl Args {
    /// Whether it is worth more without settings that are damaged than not at all.
    pub(crate) fn goes_on_without_settings(&self) -> bool {
        matches!(self.verb, Some(Agent::Status(_) | Agent::Pause(_) | Agent::Resume(_)))
    }
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    match &args.verb {
        None => serve::run(app),
        Some(Agent::Run(args)) => run::run(args, app),
        Some(Agent::Status(args)) => status::run(args, app),
        Some(Agent::Pause(args)) => pause::run(args, app),
        Some(Agent::Resume(args)) => resume::run(args, app),
        Some(Agent::Install(args)) => install::run(args, app),
    }
}
