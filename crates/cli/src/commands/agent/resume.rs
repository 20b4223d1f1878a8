//! `holdall agent resume`.

use anyhow::Result;
use holdall_state::AgentFiles;

use super::pause::Told;
use crate::app::App;
use crate::exit::Exit;

/// Ends the agent's pause
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall agent resume

Sets that became due meanwhile are backed up at once.

Exit codes: 0 done, whether or not there was a pause, 1 failed, 2 wrong usage")]
pub(crate) struct Args {}

pub(super) fn run(_: &Args, app: &App) -> Result<Exit> {
    let was_paused = AgentFiles::in_state(&app.folders.state).set_pause(None)?;
    app.output.object("agent_pause", &Told { is_paused: false, until: None })?;
    app.output.say(if was_paused { "resumed" } else { "it was not paused" })?;
    Ok(Exit::Done)
}
