//! `holdall snapshots`.

use anyhow::Result;
use holdall_engine::Snapshot;
use serde::Serialize;

use crate::app::App;
use crate::arguments::filter::Filter;
use crate::deletions;
use crate::exit::Exit;
use crate::opening::open::{self, Patience};
use crate::report::listing;
use crate::terminal::output::{Shown, base64, count, counted, local_time, rfc3339, size};

/// Lists snapshots, oldest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall snapshots --path /home/ada --tag weekly

Exit codes: 0 done, 1 failed, 2 wrong usage, 10 no such repository, 12 wrong password, 13 not \
allowed, 14 server unreachable, 20 a snapshot that this machine remembers is missing, or a record \
is damaged, 130 interrupted")]
pub(crate) struct Args {
    #[command(flatten)]
    filter: Filter,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    let filter = args.filter.resolve()?;
    let (access, keeper) = open::access_and_keeper(app, Patience::default())?;
    let listed = listing::shown(app, &access)?.snapshots;
    let wanted = Snapshot::by_making(listed.iter().filter(|one| filter.takes(one)));
    let announced = keeper.announced()?;
    let due = announced.due_by_snapshot();
    for snapshot in &wanted {
        let deletion_due = due.get(&snapshot.id).copied().map(rfc3339);
        let object = JsonSnapshot { deletion_due, ..JsonSnapshot::new(snapshot) };
        app.output.object("snapshot", &object)?;
    }
    match (wanted.is_empty(), listed.len()) {
        (true, all @ 1..) => app.output.say(format_args!(
            "no snapshot matches --machine, --path and --tag, of {} in all",
            count(all as u64)
        ))?,
        _ => print(app, &wanted)?,
    }
    deletions::tell(app, &announced);
    listing::tell_unknown(app, &access)?;
    Ok(Exit::Done)
}

/// Shows snapshots to people.
///
/// # Errors
/// If standard output cannot be written.
pub(super) fn print(app: &App, snapshots: &[&Snapshot]) -> Result<()> {
    let output = &app.output;
    if snapshots.is_empty() {
        output.say("no snapshots; `holdall backup PATH` makes one")?;
        return Ok(());
    }
    output.say(format_args!(
        "{:<10} {:<20} {:>9} {:>9}  {:<10} paths",
        "id", "received", "items", "size", "host"
    ))?;
    for snapshot in snapshots {
        let secret = &snapshot.secret;
        let tags = secret.tags.iter().map(|tag| format!(" [{}]", Shown(tag.as_bytes())));
        let pinned = if snapshot.pinned { " (pinned)" } else { "" };
        let unreadable = match secret.unreadable {
            0 => String::new(),
            left => format!(" ({} unreadable)", counted(left, "item")),
        };
        let paths: Vec<_> = secret.paths.iter().map(|path| Shown(path).to_string()).collect();
        output.result(format_args!(
            "{:<10} {:<20} {:>9} {:>9}  {:<10} {}{}{}{unreadable}{pinned}",
            snapshot.id.to_string().get(..10).unwrap_or_default(),
            local_time(snapshot.taken_ns()) + if snapshot.received_sure { "" } else { "?" },
            count(secret.items),
            size(secret.bytes),
            Shown(secret.host.as_bytes()).to_string(),
            paths.join(", "),
            tags.collect::<String>(),
            if secret.copied_from.is_some() { " (copy)" } else { "" },
        ))?;
    }
    Ok(())
}

/// A snapshot as programs see it.
#[derive(Serialize)]
pub(super) struct JsonSnapshot<'a> {
    id: String,
    machine: String,
    series: String,
    sequence: u64,
    received: String,
    received_sure: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    original_received: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    copied_from: Option<String>,
    paths: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paths_base64: Option<Vec<String>>,
    host: &'a str,
    user: &'a str,
    tags: &'a [String],
    pinned: bool,
    items: u64,
    bytes: u64,
    unreadable: u64,
    /// When it is deleted, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    deletion_due: Option<String>,
}

impl<'a> JsonSnapshot<'a> {
    /// Of that snapshot.
    pub(super) fn new(snapshot: &'a Snapshot) -> Self {
        let secret = &snapshot.secret;
        let exact = secret.paths.iter().all(|path| std::str::from_utf8(path).is_ok());
        let base64s = || secret.paths.iter().map(|path| base64(path)).collect();
        let lossy = |path: &Vec<u8>| String::from_utf8_lossy(path).into_owned();
        Self {
            id: snapshot.id.to_string(),
            machine: snapshot.machine.to_string(),
            series: snapshot.series.to_string(),
            sequence: snapshot.sequence,
            received: rfc3339(snapshot.received_ns),
            received_sure: snapshot.received_sure,
            original_received: secret.copied_from.map(|from| rfc3339(from.received_ns)),
            copied_from: secret.copied_from.map(|from| from.record.to_string()),
            paths: secret.paths.iter().map(lossy).collect(),
            paths_base64: (!exact).then(base64s),
            host: &secret.host,
            user: &secret.user,
            tags: &secret.tags,
            pinned: snapshot.pinned,
            items: secret.items,
            bytes: secret.bytes,
            unreadable: secret.unreadable,
            deletion_due: None,
        }
    }
}
