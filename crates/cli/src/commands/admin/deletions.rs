//! `holdall admin forget`, `pending` and `cancel`: deletions that wait.

use std::path::Path;

use anyhow::Result;
use holdall_server::admin::{Cancel, Deletion, Forget, ListDeletions};
use serde::Serialize;

use super::ask;
use crate::app::App;
use crate::exit::Exit;
use crate::terminal::output::{counted, local_time, rfc3339};

/// Asks for snapshots to be deleted, once the repository's delay is over
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin forget laptop 1f2e3d 4c5b6a
         holdall admin cancel 1             (cancels it)

`holdall snapshots` on the machine, or `holdall admin prune --dry-run`, tell the ids. Until the delay \
is over (a week; `holdall admin retention`), the snapshots are there as before.

Exit codes: 0 done, 1 failed, such as for a snapshot that is not there, 2 wrong usage")]
pub(crate) struct ForgetArgs {
    /// The repository's name
    #[arg(value_name = "REPOSITORY")]
    repository: String,
    /// The snapshots' ids, or the beginnings of those
    #[arg(value_name = "SNAP", required = true)]
    snapshots: Vec<String>,
}

/// Lists the deletions that wait
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin pending

Exit codes: 0 done, 1 failed, 2 wrong usage")]
pub(crate) struct PendingArgs {}

/// Cancels a deletion that is not due yet
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin cancel 1

Exit codes: 0 done, 1 failed, such as for a number that is none, 2 wrong usage")]
pub(crate) struct CancelArgs {
    /// Its number, which `holdall admin pending` tells
    #[arg(value_name = "NUMBER")]
    number: u64,
}

pub(crate) fn forget(args: &ForgetArgs, data: &Path, app: &App) -> Result<Exit> {
    let (repository, snapshots) = (args.repository.clone(), args.snapshots.clone());
    let asked = ask(data, &Forget { repository, snapshots })?.deletions;
    asked.iter().try_for_each(|deletion| show(app, deletion))?;
    app.output.note("`holdall admin cancel NUMBER` takes it back until then");
    Ok(Exit::Done)
}

pub(crate) fn pending(_: &PendingArgs, data: &Path, app: &App) -> Result<Exit> {
    let waiting = ask(data, &ListDeletions {})?.deletions;
    if waiting.is_empty() {
        app.output.say("no deletion waits")?;
    }
    waiting.iter().try_for_each(|deletion| show(app, deletion))?;
    Ok(Exit::Done)
}

pub(crate) fn cancel(args: &CancelArgs, data: &Path, app: &App) -> Result<Exit> {
    let cancelled = ask(data, &Cancel { number: args.number })?.deletions;
    cancelled.iter().try_for_each(|deletion| show(app, deletion))?;
    app.output.note("it is cancelled: nothing of it was deleted");
    for machine in cancelled.iter().filter_map(|one| one.removes.as_ref()?.machine.as_deref()) {
        app.output.note(format_args!(
            "the machine stays locked out; `holdall invite --for {machine:.12}` lets it in again"
        ));
    }
    Ok(Exit::Done)
}

pub(super) fn show(app: &App, deletion: &Deletion) -> Result<()> {
    #[derive(Serialize)]
    struct JsonDeletion<'a> {
        number: u64,
        repository: &'a str,
        snapshots: &'a [String],
        /// Blocks that gave way to others.
        blocks: u64,
        /// Whether the repository goes as a whole.
        whole: bool,
        /// The id of the machine that goes with it.
        machine: Option<&'a str>,
        asked: String,
        due: String,
    }
    let Deletion { number, repository, snapshots, superseded, removes, asked_ns, due_ns } =
        deletion;
    let blocks = superseded.map_or(0, |superseded| superseded.blocks);
    let (asked, due) = (rfc3339(*asked_ns), rfc3339(*due_ns));
    let object = JsonDeletion {
        number: *number,
        repository,
        snapshots,
        blocks,
        whole: removes.is_some(),
        machine: removes.as_ref().and_then(|removal| removal.machine.as_deref()),
        asked,
        due,
    };
    app.output.object("deletion", &object)?;
    let short = snapshots.iter().map(|id| id.get(..10).unwrap_or(id).to_owned());
    let compacted =
        (blocks > 0).then(|| format!("{} that gave way to others", counted(blocks, "block")));
    let what = match removes {
        None => short.chain(compacted).collect::<Vec<_>>().join(" "),
        Some(removal) => match &removal.machine {
            None => "all of it".to_owned(),
            Some(machine) => format!("all of it, and the machine {machine:.12}"),
        },
    };
    app.output.result(format_args!(
        "{number:>4}  {repository:<16} due {}  {what}",
        local_time(*due_ns)
    ))?;
    Ok(())
}
