//! `holdall admin revoke`.

use std::path::Path;

use anyhow::Result;
use holdall_server::admin::Revoke;

use super::ask;
use super::machines::show;
use crate::app::App;
use crate::exit::Exit;

/// Locks a machine out at once; its repository stays
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin revoke laptop
         holdall invite --for laptop      (lets it, or the computer that replaces it, in again)

All of its keys are revoked, and invites for it that nobody used; a backup that runs ends with \
exit code 13. Recovery kits go on reading. Revoking twice does no harm.

Exit codes: 0 done, 1 failed, such as for a machine that is not known, 2 wrong usage")]
pub(crate) struct Args {
    /// The machine's name, its id, or the beginning of its id
    #[arg(value_name = "MACHINE")]
    machine: String,
}

pub(crate) fn run(args: &Args, data: &Path, app: &App) -> Result<Exit> {
    let machine = ask(data, &Revoke { machine: args.machine.clone() })?;
    show(app, &machine)?;
    app.output.note(format_args!(
        "its repository {} stays; `holdall invite --for {}` lets it in again",
        machine.repository,
        machine.id.get(..12).unwrap_or_default()
    ));
    Ok(Exit::Done)
}
