//! `holdall import`: what other programs have backed up. One file for each program.

mod hints;
mod report;
mod restic;

use anyhow::Result;
use clap::Subcommand;

use crate::app::{App, GlobalArgs};
use crate::exit::Exit;

/// Imports the snapshots of another program, with their dates, hosts, paths and tags
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall import restic /mnt/old/restic -r /mnt/disk

Exit codes: as that of the program says")]
pub(crate) struct Args {
    #[command(subcommand)]
    program: Program,
}

#[derive(Debug, Subcommand)]
enum Program {
    Restic(restic::Args),
}

impl Args {
    /// Takes the password that belongs to the other program's repository from what is said of every command.
    pub(crate) fn take_password(&mut self, global: &mut GlobalArgs) {
        match &mut self.program {
            Program::Restic(args) => args.take_password(global),
        }
    }
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    match &args.program {
        Program::Restic(args) => restic::run(args, app),
    }
}
