//! `holdall history`.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use anyhow::Result;
use holdall_engine::{ChangeKind, Version};
use serde::Serialize;

use crate::app::App;
use crate::arguments::filter::Filter;
use crate::arguments::sources::snapshot_path;
use crate::exit::{Exit, Refusal};
use crate::opening::open;
use crate::report::changes::{aspects, kind};
use crate::report::entries::{modified_ns, word};
use crate::report::listing;
use crate::report::restore_command::restore_command;
use crate::terminal::output::{JsonPath, Shown, count, local_time, rfc3339};

/// Shows what became of a path, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall history /home/ada/letter.txt

Lists each snapshot in which what is at PATH is not what it was in the one before of that machine. \
Copies of a host's snapshots are compared with each other, and come where the originals would. A folder has a history of its own; what is in it does not count.

Exit codes: 0 done, 1 no snapshot has the path, 2 wrong usage, 10 no such repository, 11 in use, 12 \
wrong password, 13 not allowed, 14 server unreachable, 20 damage found, 130 interrupted")]
pub(crate) struct Args {
    /// A path; a relative one begins in the current folder
    #[arg(value_name = "PATH")]
    path: PathBuf,
    #[command(flatten)]
    filter: Filter,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    let path = snapshot_path(args.path.as_os_str().as_bytes())?;
    let filter = args.filter.resolve()?;
    let access = open::access(app)?;
    let listed = listing::shown(app, &access)?.snapshots;
    let wanted: Vec<_> =
        listed.iter().filter(|one| filter.takes(one) && one.holds(&path)).collect();
    let run = app.run();
    let versions = holdall_engine::history(&access, &wanted, &path, &run)?;
    let unread = run.take_problems();
    unread.iter().try_for_each(|problem| app.output.problem(problem))?;
    if versions.is_empty() && unread.is_empty() {
        let message = format!("{} is in none of the snapshots", Shown(&path));
        let hint = "`holdall find` looks for names everywhere";
        return Err(Refusal::new(Exit::Failed, message).hint(hint).into());
    }
    app.output.say(format_args!(
        "{:<10} {:<19}  {:<12} {:>14} {:<19}  change",
        "id", "received", "host", "size", "modified"
    ))?;
    for version in &versions {
        app.output.object("history", &JsonVersion::new(version, &path))?;
        app.output.result(line(version))?;
    }
    let newest = versions.iter().find(|version| version.entry.is_some());
    if let Some(command) = newest.and_then(|newest| restore_command(&newest.snapshot.id, &path)) {
        app.output
            .note(format_args!("`{command}` restores the newest of these, beside what is there"));
    }
    Ok(if unread.is_empty() { Exit::Done } else { Exit::Damage })
}

fn line(version: &Version<'_>) -> String {
    let snapshot = version.snapshot;
    let (size, modified) = version.entry.as_ref().map_or_else(Default::default, |entry| {
        (count(entry.size), local_time(modified_ns(entry.mtime)))
    });
    let what = aspects(&version.change).join(", ");
    let what = if what.is_empty() { String::new() } else { format!(" [{what}]") };
    format!(
        "{:.10} {}  {:<12} {size:>14} {modified:<21}  {}{what}",
        snapshot.id.to_string(),
        local_time(snapshot.taken_ns()),
        Shown(snapshot.secret.host.as_bytes()).to_string(),
        change(version),
    )
}

/// How it changed: the first version of something was created, not added.
fn change(version: &Version<'_>) -> &'static str {
    match version.change.kind {
        ChangeKind::Added => "created",
        other => kind(other),
    }
}

/// A version as programs see it.
#[derive(Serialize)]
struct JsonVersion<'a> {
    snapshot: String,
    received: String,
    machine: String,
    host: &'a str,
    #[serde(flatten)]
    path: JsonPath,
    change: &'static str,
    what: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mtime: Option<String>,
}

impl<'a> JsonVersion<'a> {
    fn new(version: &Version<'a>, path: &[u8]) -> Self {
        let snapshot = version.snapshot;
        let entry = version.entry.as_ref();
        Self {
            snapshot: snapshot.id.to_string(),
            received: rfc3339(snapshot.received_ns),
            machine: snapshot.machine.to_string(),
            host: &snapshot.secret.host,
            path: JsonPath::new(path),
            change: change(version),
            what: aspects(&version.change),
            kind: entry.map(|entry| word(entry.kind)),
            size: entry.map(|entry| entry.size),
            mtime: entry.map(|entry| rfc3339(modified_ns(entry.mtime))),
        }
    }
}
