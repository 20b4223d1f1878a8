//! `holdall admin rights`.

use std::path::Path;

use anyhow::Result;
use clap::ValueEnum;
use holdall_server::{Right, admin::Rights};

use super::ask;
use super::machines::show;
use crate::app::App;
use crate::exit::Exit;

/// Shows or sets what a machine may do in its repository
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin rights laptop             shows it
         holdall admin rights laptop read        it may restore, and back nothing up
         holdall admin rights laptop backup      it may do both, as every new machine

No machine may delete or overwrite anything, or use another's repository. A backup that runs \
while its machine loses the right ends with exit code 13.

Exit codes: 0 done, 1 failed, such as for a machine that is not known, 2 wrong usage")]
pub(crate) struct Args {
    /// The machine's name, its id, or the beginning of its id
    #[arg(value_name = "MACHINE")]
    machine: String,
    /// What it may do from now on
    #[arg(value_name = "RIGHT")]
    right: Option<NamedRight>,
}

/// A right, as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum NamedRight {
    /// Back up and restore
    Backup,
    /// Restore
    Read,
}

impl From<NamedRight> for Right {
    fn from(named: NamedRight) -> Self {
        match named {
            NamedRight::Backup => Self::Backup,
            NamedRight::Read => Self::Read,
        }
    }
}

pub(crate) fn run(args: &Args, data: &Path, app: &App) -> Result<Exit> {
    let right = args.right.map(Right::from);
    show(app, &ask(data, &Rights { machine: args.machine.clone(), right })?)?;
    Ok(Exit::Done)
}
