//! `holdall lab`: measures the layers that a backup leans on. One file for each verb.

mod answers;
mod bench;
mod circumstances;
pub(crate) mod compare;
mod cpu;
mod disk;
mod estimate;
mod files;
mod history;
mod listen;
mod net;
mod path;
mod place;
mod quick;
mod rate;
mod table;

use anyhow::{Context, Result};
use clap::Subcommand;

use crate::app::App;
use crate::exit::Exit;

/// Measures disks, files, processor and network, and says what they could do
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall lab disk /mnt/usb

Exit codes: 0 measured, 1 failed, 2 wrong usage, 4 slower than --fail-below, 130 interrupted")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Lab,
}

#[derive(Debug, Subcommand)]
enum Lab {
    Disk(disk::Args),
    Files(files::Args),
    Cpu(cpu::Args),
    Quick(quick::Args),
    Net(Box<net::Args>),
    Listen(listen::Args),
    Path(path::Args),
    Estimate(estimate::Args),
    Compare(compare::Args),
    History(history::Args),
}

/// More threads than most measurements begin; with fewer a row would not be what it says.
const THREADS: usize = 32;

pub(crate) fn run(args: Args, app: &App) -> Result<Exit> {
    holdall_sys::thread::test(THREADS)
        .context("the lab cannot start the threads that it measures with")?;
    match args.verb {
        Lab::Disk(args) => disk::run(&args, app),
        Lab::Files(args) => files::run(&args, app),
        Lab::Cpu(args) => cpu::run(&args, app),
        Lab::Quick(args) => quick::run(&args, app),
        Lab::Net(args) => net::run(&args, app),
        Lab::Listen(args) => listen::run(args, app),
        Lab::Path(args) => path::run(&args, app),
        Lab::Estimate(args) => estimate::run(&args, app),
        Lab::Compare(args) => compare::run(&args, app),
        Lab::History(args) => history::run(&args, app),
    }
}
