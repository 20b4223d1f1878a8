//! `holdall diff`.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use anyhow::Result;
use holdall_engine::{ChangeKind, ChangedEntry, DiffSummary, EngineError, Entry};
use serde::Serialize;

use crate::app::App;
use crate::arguments::filter::Filter;
use crate::arguments::sources::{snapshot_name, snapshot_path};
use crate::exit::Exit;
use crate::opening::open;
use crate::report::changes::{aspects, kind};
use crate::report::listing;
use crate::terminal::output::{JsonPath, Output, Shown, count, size};

/// Shows what changed from one snapshot to another
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall diff 1f3a latest /home/ada --metadata

Each line is a change: `+` was added, `-` was removed, `M` has other content, `T` is of another type, \
and with --metadata `U` has only other metadata, which are named. Content is compared by its ids, so \
a time that was set proves nothing. A file whose holes were filled counts as other content. The \
bytes added are the sizes of new files and of changed ones as they are after; the bytes removed, of \
those that are gone and of changed ones as they were before.

Exit codes: 0 done, whether anything changed or not, 1 no such snapshot or path, 2 wrong usage, 10 no \
such repository, 11 in use, 12 wrong password, 13 not allowed, 14 server unreachable, 20 damage found, 130 \
interrupted")]
pub(crate) struct Args {
    /// `latest` (of those that --machine, --path and --tag take), or the beginning of a snapshot's id
    #[arg(value_name = "A", value_parser = snapshot_name)]
    before: String,
    /// The snapshot to compare it with
    #[arg(value_name = "B", value_parser = snapshot_name)]
    after: String,
    /// Only what is at this path and below it
    #[arg(value_name = "PATH", default_value = "/")]
    path: PathBuf,
    /// Shows changes of mode, owner, times and attributes too
    #[arg(long)]
    metadata: bool,
    #[command(flatten)]
    filter: Filter,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    let path = snapshot_path(args.path.as_os_str().as_bytes())?;
    let filter = args.filter.resolve()?;
    let access = open::access(app)?;
    let shown = listing::shown(app, &access)?;
    let of = Some(&path[..]).filter(|path| *path != b"/");
    let before = shown.wanted(&access, &args.before, of, &filter)?;
    let after = shown.wanted(&access, &args.after, of, &filter)?;
    let show = &mut |entry: ChangedEntry<'_>| {
        show(&app.output, args.metadata, &entry)
            .map_err(|error| EngineError::io("standard output", error))
    };
    let summary = holdall_engine::diff(&access, before, after, &path, &app.run(), show)?;
    report(&app.output, &summary)?;
    Ok(Exit::Done)
}

fn show(output: &Output, metadata: bool, entry: &ChangedEntry<'_>) -> std::io::Result<()> {
    let letter = match entry.change.kind {
        ChangeKind::Added => '+',
        ChangeKind::Removed => '-',
        ChangeKind::Type => 'T',
        ChangeKind::Content => 'M',
        ChangeKind::Metadata if metadata => 'U',
        ChangeKind::Metadata => return Ok(()),
    };
    output.object("change", &JsonChange::new(entry))?;
    let what = aspects(&entry.change).join(", ");
    let what = if metadata && !what.is_empty() { format!(" [{what}]") } else { String::new() };
    output.result(format_args!("{letter} {}{what}", Shown(entry.path)))
}

fn report(output: &Output, summary: &DiffSummary) -> std::io::Result<()> {
    let &DiffSummary { added, removed, changed, type_changed, metadata, .. } = summary;
    output.object("summary", &JsonSummary::new(summary))?;
    output.say(format_args!(
        "{} added, {} removed, {} changed, {} of another type, {} with other metadata",
        count(added),
        count(removed),
        count(changed),
        count(type_changed),
        count(metadata),
    ))?;
    let (gained, lost) = (size(summary.bytes_added), size(summary.bytes_removed));
    output.say(format_args!("{gained} added, {lost} removed"))
}

/// A change as programs see it.
#[derive(Serialize)]
struct JsonChange {
    #[serde(flatten)]
    path: JsonPath,
    change: &'static str,
    what: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_before: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_after: Option<u64>,
}

impl JsonChange {
    fn new(entry: &ChangedEntry<'_>) -> Self {
        let size = |entry: Option<&Entry>| entry.map(|entry| entry.size);
        Self {
            path: JsonPath::new(entry.path),
            change: kind(entry.change.kind),
            what: aspects(&entry.change),
            size_before: size(entry.before),
            size_after: size(entry.after),
        }
    }
}

/// A summary as programs see it.
#[derive(Serialize)]
struct JsonSummary {
    added: u64,
    removed: u64,
    changed: u64,
    type_changed: u64,
    metadata: u64,
    bytes_added: u64,
    bytes_removed: u64,
}

impl JsonSummary {
    fn new(summary: &DiffSummary) -> Self {
        let &DiffSummary { added, removed, changed, type_changed, metadata, .. } = summary;
        let &DiffSummary { bytes_added, bytes_removed, .. } = summary;
        Self { added, removed, changed, type_changed, metadata, bytes_added, bytes_removed }
    }
}
