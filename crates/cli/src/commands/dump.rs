//! `holdall dump`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use holdall_diagnosis::Forecast;
use holdall_engine::{Dump, DumpSummary};
use holdall_state::private_file::sync_folder_of;
use serde::Serialize;

use crate::app::App;
use crate::arguments::filter::Filter;
use crate::arguments::sources::split_snapshot;
use crate::exit::{Exit, Refusal};
use crate::opening::open;
use crate::report::listing;
use crate::terminal::output::{Output, count, counted, size};
use crate::terminal::progress::watched;

/// Bytes that are handed to the system at once.
const BUFFER_BYTES: usize = 256 << 10;

/// Writes a file, or a folder as tar, to standard output
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples: holdall dump latest:/home/ada/letter.txt | less
          holdall dump 1f3a:/home/ada | tar --xattrs --xattrs-include='*' --acls -xpf - -C new

A file is written byte by byte, its holes as zeros. A folder becomes a tar archive in the pax format, \
with attributes, access control lists, hard links and sparse files as GNU tar reads them; names in it \
start with ./ and sockets are left out. A dump ends at the first thing that is damaged; `holdall \
restore` goes around it.

Exit codes: 0 done, 1 failed, 2 wrong usage, 10 no such repository, 11 in use, 12 wrong password, 13 \
not allowed, 14 server unreachable, 20 damage found, 130 interrupted")]
pub(crate) struct Args {
    /// `latest` (of those that --machine, --path and --tag take), or the beginning of a snapshot's id; and
    /// what of it (`SNAP:/` is everything)
    #[arg(value_name = "SNAP:PATH")]
    snapshot: OsString,
    /// Writes to this new file instead
    #[arg(long, value_name = "FILE")]
    target: Option<PathBuf>,
    #[command(flatten)]
    filter: Filter,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    let (name, path) = split_snapshot(&args.snapshot)?;
    let path = path.ok_or_else(|| {
        Refusal::new(Exit::Usage, "no path was named after the snapshot")
            .hint(format!("`holdall dump {name}:/` dumps everything"))
    })?;
    if app.output.json && args.target.is_none() {
        return Err(Refusal::new(Exit::Usage, "standard output cannot be both JSON and a dump")
            .hint("give a file for the dump: --target FILE")
            .into());
    }
    let filter = args.filter.resolve()?;
    let access = open::access(app)?;
    let shown = listing::shown(app, &access)?;
    let path = shown.meant(&access, path);
    let of = Some(&path[..]).filter(|path| *path != b"/");
    let snapshot = shown.wanted_with(&access, &name, of, &filter)?;
    let dump = Dump::find(&access, snapshot, &path)?;
    match &args.target {
        Some(target) => {
            let summary = into_file(app, &dump, target)?;
            report(app, &dump, &summary)?;
        }
        None => {
            let summary = to_output(app, &dump)?;
            note_sockets(app, &summary);
        }
    }
    Ok(Exit::Done)
}

fn to_output(app: &App, dump: &Dump<'_>) -> Result<DumpSummary> {
    let stdout = io::stdout();
    if dump.is_archive() && stdout.is_terminal() {
        return Err(Refusal::new(Exit::Usage, "an archive is not for a terminal")
            .hint("give it to tar: `... | tar -xpf -`, or to a file: --target FILE")
            .into());
    }
    // What is written is no lines, by which the library would cut it.
    let out = stdout.as_fd().try_clone_to_owned().context("standard output cannot be used")?;
    // A bar would run through what is shown.
    let output = if stdout.is_terminal() { app.output.silent() } else { app.output.clone() };
    written(app, &output, dump, &File::from(out))
}

/// Writes a new file, of which nothing is left if it does not get whole.
fn into_file(app: &App, dump: &Dump<'_>, target: &Path) -> Result<DumpSummary> {
    let what = || format!("cannot make {}", target.display());
    // An archive has the files of several users, and a file may have been for its owner alone.
    let mut options = File::options();
    let file = options.write(true).create_new(true).mode(0o600).open(target).with_context(what)?;
    let summary = written(app, &app.output, dump, &file).and_then(|summary| {
        // What is told to be done stays, whatever happens to the computer.
        file.sync_all().with_context(|| format!("cannot write {}", target.display()))?;
        sync_folder_of(target)?;
        Ok(summary)
    });
    if summary.is_err() {
        // Why it is not whole matters more than that it is still there.
        let _ = std::fs::remove_file(target);
    }
    summary
}

fn written(app: &App, output: &Output, dump: &Dump<'_>, file: &File) -> Result<DumpSummary> {
    let run = app.run();
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
    Ok(watched(output, &run, Forecast::typical, || dump.write(&mut out, &run))?)
}

fn report(app: &App, dump: &Dump<'_>, summary: &DumpSummary) -> Result<()> {
    let &DumpSummary { items, bytes, sockets } = summary;
    let format = if dump.is_archive() { "tar" } else { "file" };
    app.output.object("summary", &JsonSummary { format, items, bytes, sockets })?;
    app.output.say(format_args!("{}, {}", counted(items, "item"), size(bytes)))?;
    note_sockets(app, summary);
    Ok(())
}

fn note_sockets(app: &App, summary: &DumpSummary) {
    if summary.sockets > 0 {
        let sockets = count(summary.sockets);
        app.output.note(format_args!("note: {sockets} sockets were left out: tar has none"));
    }
}

/// A summary as programs see it.
#[derive(Serialize)]
struct JsonSummary {
    format: &'static str,
    items: u64,
    bytes: u64,
    sockets: u64,
}
