//! `holdall lab path`: the whole path of a backup, step by step, and a real backup beside it.
//!
//! The measuring itself is done by [`holdall_diagnosis::path`]; here it is asked for, given a client, and told.

mod client;
mod ladder;
mod target;
mod told;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use holdall_diagnosis::path::{MEMORY_DIR, Measuring};
use holdall_lab::report::Fact;

use super::place::Place;
use crate::app::App;
use crate::arguments::quantity;
use crate::commands::backup;
use crate::exit::{Exit, Refusal};
use crate::lab::lab_report::ReportArgs;
use crate::lab::remembered;

use client::{TemporaryClient, out_of_path};
use told::Told;

/// How much of a source is measured at most, unless --size says.
const USUAL_BYTES: u64 = 256 << 20;
/// Measures every step of a backup's path, and a real backup beside them
///
/// First each step alone: walking and reading SOURCE, the processor's part, the wire, the repository's disk,
/// copying SOURCE file by file and as one stream. Then it backs SOURCE up, again without a change, and restores
/// it. At the end it shows each step's ceiling, how much of it the backup used, and the limiting layer. Without
/// SOURCE it makes trees: few large files, many small ones, a mix, text, and what does not compress. It backs
/// these up with 1 % changed, too. It stores nothing in the repository, and changes nothing of SOURCE.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall lab path /home
         holdall lab path /home -r /mnt/usb/backups --report path.html
         holdall lab path

The repository that is named, or else the paired server, says where the path leads; without either, the \
backups go to this computer's own disk. They go into a temporary repository, beside the one in a \
directory; of a server, all bytes go over the wire to its disk, and it forgets them. SOURCE is measured \
up to --size, the first part of it in the order of names if it is larger. What is written lies in a \
folder of its own, takes at most half of the free room, and is gone afterwards.

Exit codes: 0 measured, 1 failed, 2 wrong usage, 4 slower than --fail-below, 10 no such repository, 13 not \
allowed, 14 server unreachable, 20 the repository is damaged, 130 interrupted")]
pub(crate) struct Args {
    /// The directory to back up [default: trees are made]
    #[arg(value_name = "SOURCE")]
    source: Option<PathBuf>,
    /// Measures at most so many bytes of SOURCE, or of the first tree that is made, such as 1G [default: 256M]
    #[arg(long, value_name = "N", value_parser = quantity::block_bytes)]
    size: Option<u64>,
    /// Exit code 4 if a first backup does fewer bytes a second, such as 20M
    #[arg(long, value_name = "RATE", value_parser = quantity::rate)]
    fail_below: Option<u64>,
    #[command(flatten)]
    report: ReportArgs,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    args.report.check()?;
    let source = args.source.as_deref().map(directory).transpose()?;
    let target = target::find(app)?;
    let (dir, notes) = target::place(&target, app)?;
    let mut place = Place::open(&dir, app)?;
    // A run to a server that was killed left its index there, and only such a run needs that folder.
    place.sweep(Path::new(MEMORY_DIR));
    let mut circumstances = place.circumstances();
    if let Some(source) = &source {
        circumstances.add_place("source", source);
    }
    if let Some(folder) = target.folder() {
        circumstances.add_place("repository", folder);
    }
    if let Some(far) = target.server() {
        circumstances.set_server(far.words());
    }
    notes.into_iter().chain([target.words()]).for_each(|note| circumstances.note(note));
    circumstances.tell(&app.output)?;
    let (mut told, client) = (Told::new(app), TemporaryClient(app));
    let at = (&place.scratch, app.interrupt.flag());
    let mut measuring = Measuring::new(&client, backup::cores(), at, &target, &mut told);
    let size = args.size.unwrap_or(USUAL_BYTES);
    match &source {
        Some(source) => measuring.source(source, size),
        None => measuring.trees(size),
    }
    .map_err(out_of_path)?;
    let climbed = measuring.end();
    let mut report = circumstances.report(told.rows());
    let leads_to = remembered::place(app);
    report.facts.extend(leads_to.map(|place| Fact::new(holdall_diagnosis::REPOSITORY, &place)));
    ladder::conclude(climbed, app, told.notes(), &mut report)?;
    args.report.finish(app, &report)?;
    place.close()?;
    Ok(told.exit(args.fail_below))
}

/// A directory that is there.
fn directory(path: &Path) -> Result<PathBuf> {
    let named = || path.display().to_string();
    let path = path.canonicalize().with_context(named)?;
    if !path.is_dir() {
        let refusal = Refusal::new(Exit::Usage, format!("{} is no directory", path.display()));
        return Err(refusal.hint("name the directory that it lies in").into());
    }
    Ok(path)
}
