//! `holdall disk`: disks for a server's backups. One file for each verb, and one for what both that write ask.

mod erase;
mod list;
mod meant;
mod prepare;

use anyhow::Result;
use clap::Subcommand;

use crate::app::App;
use crate::exit::Exit;

/// Lists disks, makes one ready for a server's backups, or erases one
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall disk list
         sudo holdall disk prepare /dev/sdb --label backup

Exit codes: as each says")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Disk,
}

#[derive(Debug, Subcommand)]
enum Disk {
    List(list::Args),
    Prepare(prepare::Args),
    Erase(erase::Args),
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    match &args.verb {
        Disk::List(_) => list::run(app),
        Disk::Prepare(args) => prepare::run(args, app),
        Disk::Erase(args) => erase::run(args, app),
    }
}
