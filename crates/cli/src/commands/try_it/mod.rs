//! `holdall try`.

mod attempt;
mod memory;
mod report;
mod server;

use std::path::PathBuf;

use anyhow::Result;

use super::browse;
use crate::app::App;
use crate::exit::{Exit, Refusal};

/// Does everything once, for real, and leaves nothing behind
#[derive(Debug, clap::Args)]
#[command(
    name = "try",
    after_help = "\
Example: holdall try /usr/share
         holdall try /usr/share --open      (and looks at it in a browser)

A server on loopback over TLS in a temporary place, a full backup, an unchanged one, a restore, a \
comparison of what was restored with the source, and what held each of them back. It needs room for \
twice the folder, in TMPDIR, /var/tmp, the cache folder or beside the folder; not on a RAM disk.

Exit codes: 0 identical, 1 failed, 2 wrong usage, 3 identical, but some things could not be read, \
20 not identical, 130 interrupted"
)]
pub(crate) struct Args {
    /// The folder to try it with [default: the home folder]
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Ends with a page open on what was backed up, until Ctrl-C
    #[arg(long)]
    open: bool,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    let home = || std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let dir = args.dir.clone().or_else(home).ok_or_else(|| {
        Refusal::new(Exit::Usage, "no home folder is set").hint("name a folder: `holdall try DIR`")
    })?;
    if args.open {
        browse::refuse_without_pages()?;
    }
    attempt::run(app, &dir, args.open)
}
