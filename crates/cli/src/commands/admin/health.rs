//! `holdall admin health`.

use std::path::Path;

use anyhow::Result;
use holdall_server::admin;

use crate::app::App;
use crate::exit::{Exit, Refusal};

/// Says whether the server runs and answers, for containers and scripts
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin health && echo it runs

It asks the server on this computer that has the data folder. From elsewhere, https://SERVER:7443/healthz answers.

Exit codes: 0 it runs, 1 it does not, 2 wrong usage")]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, data: &Path, app: &App) -> Result<Exit> {
    if !admin::is_served(data)? {
        let message = format!("no server runs on {}", data.display());
        return Err(Refusal::new(Exit::Failed, message)
            .hint("start it with `holdall serve`")
            .into());
    }
    app.output.say("the server runs and answers")?;
    Ok(Exit::Done)
}
