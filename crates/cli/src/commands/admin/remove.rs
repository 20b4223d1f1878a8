//! `holdall admin remove`.

use std::path::Path;

use anyhow::Result;
use holdall_server::admin::Remove;

use super::deletions::show;
use super::{Which, ask};
use crate::app::App;
use crate::exit::Exit;
use crate::terminal::output::local_time;

/// Removes a machine with its repository, or a repository, once its delay is over
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin remove laptop
         holdall admin remove laptop --repository     (the machine stays, and may begin another one)
         holdall admin cancel 1                       (takes it back)

A machine is locked out at once. Its repository, with all snapshots in it, is deleted as late as any other deletion: a \
week later (`holdall admin retention`). Until then kits read it, and what waits is announced. A machine that was to be \
removed stays locked out after a `cancel`, until `holdall invite --for` lets it in again.

Exit codes: 0 done, 1 failed, such as for a name that is none, 2 wrong usage")]
pub(crate) struct Args {
    /// The machine's name or id, or the repository's name
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    which: Which,
}

pub(crate) fn run(args: &Args, data: &Path, app: &App) -> Result<Exit> {
    let removal = Remove { name: args.name.clone(), only: args.which.only() };
    for deletion in ask(data, &removal)?.deletions {
        show(app, &deletion)?;
        let locked_out = match deletion.removes.is_some_and(|removal| removal.machine.is_some()) {
            true => "the machine is locked out from now on; ",
            false => "",
        };
        app.output.note(format_args!(
            "{locked_out}all snapshots of {} stay until {}; `holdall admin cancel {}` takes that back",
            deletion.repository,
            local_time(deletion.due_ns),
            deletion.number
        ));
    }
    Ok(Exit::Done)
}
