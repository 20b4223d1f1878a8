//! `holdall admin rename`.

use std::path::Path;

use anyhow::Result;
use holdall_server::admin::Rename;

use super::{Which, ask, machines, repositories};
use crate::app::App;
use crate::exit::Exit;

/// Gives a machine or a repository another name
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin rename laptop anna
         holdall admin rename laptop \"Anna's laptop\" --machine

A machine whose repository has the same name is renamed with it. Computers and kits that know a repository by its \
former name find it by that name as before, so nothing has to be paired again; no other repository gets that name.

Exit codes: 0 done, 1 failed, such as for a name that is taken, 2 wrong usage")]
pub(crate) struct Args {
    /// The machine's name or id, or the repository's name
    #[arg(value_name = "OLD")]
    name: String,
    /// What it is to be called
    #[arg(value_name = "NEW")]
    new: String,
    #[command(flatten)]
    which: Which,
}

pub(crate) fn run(args: &Args, data: &Path, app: &App) -> Result<Exit> {
    let (name, new) = (args.name.clone(), args.new.clone());
    let renamed = ask(data, &Rename { name, new, only: args.which.only() })?;
    renamed.machine.iter().try_for_each(|machine| machines::show(app, machine))?;
    renamed.repository.iter().try_for_each(|repository| repositories::show(app, repository))?;
    if renamed.repository.is_some() {
        app.output.note(format_args!("{} leads to it as before", args.name));
    }
    Ok(Exit::Done)
}
