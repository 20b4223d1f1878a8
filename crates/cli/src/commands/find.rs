//! `holdall find`.

use std::ffi::OsString;

use anyhow::Result;
use clap::ValueEnum;
use holdall_engine::{EngineError, Entry, EntryKind, FoundEntry, Snapshot};
use holdall_format::RecordHash;
use serde::Serialize;

use crate::app::App;
use crate::arguments::filter::Filter;
use crate::arguments::moment::Moment;
use crate::arguments::selection::Names;
use crate::arguments::sources::snapshot_name;
use crate::exit::Exit;
use crate::opening::open;
use crate::report::entries::{modified_ns, word};
use crate::report::listing;
use crate::report::restore_command::restore_command;
use crate::terminal::output::{JsonPath, Output, Shown, local_time, rfc3339};

/// Finds paths in snapshots
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples: holdall find '*.odt' --newer 2026-03-01
          holdall find letter.txt -i --type f --newer 14d --snapshot latest

Patterns are those of gitignore: one without a slash matches names anywhere, one with a slash matches \
whole paths from the top, `**` any number of folders, and `!` takes back what an earlier pattern \
matched. All snapshots are searched, newest first.

T is a moment (2026-03-01, 2026-03-01T08:30:00Z) or how long ago (14d, 2h 30m).

Exit codes: 0 done, even if nothing was found, 1 no such snapshot, 2 wrong usage, 10 no such \
repository, 11 in use, 12 wrong password, 13 not allowed, 14 server unreachable, 20 damage found, 130 \
interrupted")]
pub(crate) struct Args {
    /// What to look for
    #[arg(value_name = "PATTERN", required = true)]
    patterns: Vec<OsString>,
    #[command(flatten)]
    filter: Filter,
    /// Only this snapshot: `latest`, or the beginning of its id; can be given several times
    #[arg(long = "snapshot", value_name = "SNAP", value_parser = snapshot_name)]
    snapshots: Vec<String>,
    /// Takes upper and lower case of ASCII letters for the same
    #[arg(short, long)]
    ignore_case: bool,
    /// Only what was modified after T
    #[arg(long, value_name = "T")]
    newer: Option<Moment>,
    /// Only what was modified before T
    #[arg(long, value_name = "T")]
    older: Option<Moment>,
    /// Only files (f), folders (d) or symbolic links (l)
    #[arg(long = "type", value_enum, value_name = "TYPE")]
    kind: Option<Kind>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    /// Files
    F,
    /// Folders
    D,
    /// Symbolic links
    L,
}

impl Kind {
    fn is(self, kind: EntryKind) -> bool {
        match self {
            Self::F => kind == EntryKind::File,
            Self::D => kind == EntryKind::Directory,
            Self::L => kind == EntryKind::Symlink,
        }
    }
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    let names = Names::new(&args.patterns, args.ignore_case)?;
    let filter = args.filter.resolve()?;
    let access = open::access(app)?;
    let shown = listing::shown(app, &access)?;
    let named = shown.chosen(&access, &args.snapshots, &filter)?;
    let is_named =
        |snapshot: &Snapshot| named.is_empty() || named.iter().any(|named| named.id == snapshot.id);
    let wanted = shown.snapshots.iter().filter(|one| filter.takes(one) && is_named(one));
    let newest_first: Vec<_> = Snapshot::by_making(wanted).into_iter().rev().collect();
    let wanted = |path: &[u8], entry: &Entry| {
        let modified = modified_ns(entry.mtime);
        args.kind.is_none_or(|kind| kind.is(entry.kind))
            && args.newer.is_none_or(|newer| modified > newer.nanoseconds())
            && args.older.is_none_or(|older| modified < older.nanoseconds())
            && names.matches(path, entry.kind == EntryKind::Directory)
    };
    let (mut shown, mut first) = (None, None);
    let show = &mut |snapshot: &Snapshot, found: FoundEntry<'_>| {
        first.get_or_insert_with(|| restore_command(&snapshot.id, found.path));
        show(&app.output, snapshot, &found, &mut shown)
            .map_err(|error| EngineError::io("standard output", error))
    };
    let run = app.run();
    let searched = holdall_engine::find(&access, &newest_first, &wanted, &run, show);
    let damaged = run.take_problems();
    damaged.iter().try_for_each(|problem| app.output.problem(problem))?;
    searched?;
    match first {
        None => app.output.note("nothing was found"),
        Some(None) => {}
        Some(Some(command)) => app
            .output
            .note(format_args!("`{command}` restores the first of these, beside what is there")),
    }
    Ok(if damaged.is_empty() { Exit::Done } else { Exit::Damage })
}

/// Shows a match below its snapshot, which is shown once.
fn show(
    output: &Output,
    snapshot: &Snapshot,
    found: &FoundEntry<'_>,
    shown: &mut Option<RecordHash>,
) -> std::io::Result<()> {
    if *shown != Some(snapshot.id) {
        *shown = Some(snapshot.id);
        output.result(format_args!(
            "snapshot {:.10} {} {}",
            snapshot.id.to_string(),
            local_time(snapshot.taken_ns()),
            Shown(snapshot.secret.host.as_bytes()),
        ))?;
    }
    output.object("match", &JsonMatch::new(snapshot, found))?;
    output.result(format_args!("  {}", Shown(found.path)))
}

/// A match as programs see it.
#[derive(Serialize)]
struct JsonMatch {
    snapshot: String,
    #[serde(flatten)]
    path: JsonPath,
    kind: &'static str,
    size: u64,
    mtime: String,
}

impl JsonMatch {
    fn new(snapshot: &Snapshot, found: &FoundEntry<'_>) -> Self {
        Self {
            snapshot: snapshot.id.to_string(),
            path: JsonPath::new(found.path),
            kind: word(found.kind),
            size: found.size,
            mtime: rfc3339(modified_ns(found.mtime)),
        }
    }
}
