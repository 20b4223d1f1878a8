//! `holdall prune`.

use anyhow::{Context, Error, Result};
use holdall_engine::gone_records;
use holdall_format::RepositoryId;
use holdall_protocol::{AskedPrune, PruneReport, Repository};
use holdall_state::Receipts;
use serde::Serialize;

use crate::app::App;
use crate::deletions::TokenArgs;
use crate::exit::Exit;
use crate::opening::keeper::Keeper;
use crate::opening::open::{self, Patience};
use crate::report::listing;
use crate::terminal::output::{Shown, counted, local_time, rfc3339, size};

/// Deletes what no snapshot needs any more
///
/// It needs no password. Backups and restores beside it are safe: on a server they go on, in a directory
/// whatever comes second is refused (exit code 11). In a directory that several computers may write
/// to, and on a server, what is not needed waits for a day before it goes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall prune --dry-run

A server prunes by itself, once an hour, and now with an administrator's token (`holdall admin token`, \
then --admin-token-file FILE).

If anything is missing or cannot be read, a record too that this machine has seen, nothing is deleted: \
run `holdall check`.

Exit codes: 0 done, 1 failed, 2 wrong usage, 10 no such repository, 11 in use, 13 not allowed, \
14 server unreachable, 20 damage found, and nothing deleted, 130 interrupted")]
pub(crate) struct Args {
    /// Says what would be deleted, and changes nothing
    #[arg(short = 'n', long)]
    dry_run: bool,
    #[command(flatten)]
    token: TokenArgs,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    let opened = open::place(app, Patience::default())?;
    let token = args.token.read(&app.interrupt)?;
    let repository = opened.place.repository.as_ref();
    let is_in_directory = matches!(opened.keeper, Keeper::Directory(_));
    check_whole(app, repository, opened.wrappings()?.repository, is_in_directory)?;
    let report = opened.keeper.prune(token.as_ref(), args.dry_run)?;
    tell_done(app, &report, args.dry_run)?;
    Ok(Exit::Done)
}

const NOTHING: &str = "nothing is deleted";

/// Refuses to delete anything where a record is gone that this machine has the receipt of, or has seen: what
/// only that one needs would be taken for unneeded.
///
/// # Errors
/// As for [`Receipts::check_sealed`]; damage where one is gone.
pub(super) fn check_whole(
    app: &App,
    repository: &dyn Repository,
    id: RepositoryId,
    is_in_directory: bool,
) -> Result<()> {
    let receipts = Receipts::in_state(&app.folders.state);
    receipts.check_sealed(repository, id).context(NOTHING)?;
    let gone = gone_records(&app.folders.cache.join(id.to_string()), repository, id)?;
    // What another record follows, the repository misses by itself, until it is given up.
    match gone.iter().find(|gone| !gone.is_followed) {
        Some(gone) => Err(Error::from(listing::is_gone(gone, is_in_directory)).context(NOTHING)),
        None => Ok(()),
    }
}

/// Says what a prune did, or would do.
///
/// # Errors
/// If standard output cannot be written, and nothing was done.
pub(super) fn tell_done(app: &App, pruned: &AskedPrune, dry_run: bool) -> Result<()> {
    app.output.told(tell(app, pruned, dry_run), "the repository was pruned", dry_run)
}

fn tell(app: &App, pruned: &AskedPrune, dry_run: bool) -> Result<()> {
    app.output.object("summary", &JsonPruned::new(pruned, dry_run))?;
    tell_forgotten(app, pruned, dry_run)?;
    let report = &pruned.report;
    let freed = report.stored_before_bytes.saturating_sub(report.stored_after_bytes);
    let would = if dry_run { "would be " } else { "" };
    app.output.say(format_args!(
        "{} {would}freed, {} stored before",
        size(freed),
        size(report.stored_before_bytes)
    ))?;
    if report.moved_bytes > 0 {
        app.output.say(format_args!(
            "{} {would}copied out of packs that go, since it is needed",
            size(report.moved_bytes)
        ))?;
    }
    if let Some(due_ns) = report.next_due_ns {
        app.output.say(format_args!(
            "{} in {} to be deleted by a prune after {}",
            size(report.waiting_bytes),
            counted(report.waiting_packs, "pack"),
            local_time(due_ns)
        ))?;
    }
    Ok(())
}

/// Says which snapshots a server forgot, or would, and why its rules let none go.
fn tell_forgotten(app: &App, pruned: &AskedPrune, dry_run: bool) -> Result<()> {
    let would = if dry_run { "would be " } else { "" };
    if let Some(alarm) = &pruned.alarm {
        app.output.say(format_args!(
            "automatic deletion is paused on the server: {}; its administrator resumes it with `holdall admin \
             resume`",
            Shown(alarm.as_bytes())
        ))?;
    }
    for (snapshot, received_ns) in &pruned.forgotten {
        app.output.say(format_args!(
            "{} of {} {would}forgotten",
            snapshot.to_string().get(..10).unwrap_or_default(),
            local_time(*received_ns)
        ))?;
    }
    Ok(())
}

/// A prune as programs see it.
#[derive(Debug, Serialize)]
struct JsonPruned {
    dry_run: bool,
    stored_before_bytes: u64,
    stored_after_bytes: u64,
    deleted_packs: u64,
    deleted_bytes: u64,
    condemned_packs: u64,
    condemned_bytes: u64,
    moved_bytes: u64,
    waiting_packs: u64,
    waiting_bytes: u64,
    next_due: Option<String>,
    checkpoints_forgotten: u64,
    /// On a server.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    snapshots_forgotten: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alarm: Option<String>,
}

impl JsonPruned {
    /// Of that report.
    fn new(pruned: &AskedPrune, dry_run: bool) -> Self {
        let report = &pruned.report;
        let PruneReport { stored_before_bytes, stored_after_bytes, .. } = *report;
        Self {
            dry_run,
            stored_before_bytes,
            stored_after_bytes,
            deleted_packs: report.deleted_packs,
            deleted_bytes: report.deleted_bytes,
            condemned_packs: report.condemned_packs,
            condemned_bytes: report.condemned_bytes,
            moved_bytes: report.moved_bytes,
            waiting_packs: report.waiting_packs,
            waiting_bytes: report.waiting_bytes,
            next_due: report.next_due_ns.map(rfc3339),
            checkpoints_forgotten: report.checkpoints_forgotten,
            snapshots_forgotten: pruned.forgotten.iter().map(|(id, _)| id.to_string()).collect(),
            alarm: pruned.alarm.clone(),
        }
    }
}
