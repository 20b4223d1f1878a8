//! `holdall admin prune`.

use std::path::Path;

use anyhow::Result;
use holdall_server::admin::{Prune, PrunedEntry};
use serde::Serialize;

use super::{ask, date_of};
use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::terminal::output::{count, counted, local_time, rfc3339, size};

/// Applies the rules for keeping, and deletes what nothing needs
///
/// A running server does this by itself once an hour. What is no longer needed waits for a day before
/// it is deleted.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin prune --dry-run
         holdall admin prune laptop

After the clock was set, or the server was off for weeks, nothing goes until the clock has gone on \
evenly for a day. Rules delete nothing until `holdall admin resume` after one of these: a snapshot has \
less than half of what the one before held; a series got more than 100 snapshots within an hour; the \
same rules as before would delete most of a machine's snapshots at once; the repository's rules are not known.

Exit codes: 0 done, 1 failed, 2 wrong usage")]
pub(crate) struct Args {
    /// One repository; all of them without
    #[arg(value_name = "REPOSITORY")]
    repository: Option<String>,
    /// Says what would go, and changes nothing
    #[arg(short = 'n', long)]
    dry_run: bool,
}

pub(crate) fn run(args: &Args, data: &Path, app: &App) -> Result<Exit> {
    let (repository, dry_run) = (args.repository.clone(), args.dry_run);
    let pruned = ask(data, &Prune { repository, dry_run })?.pruned;
    pruned.iter().try_for_each(|entry| show(app, entry))?;
    if pruned.is_empty() {
        app.output.say("no repositories")?;
    }
    Ok(if pruned.iter().any(|entry| entry.problem.is_some()) { Exit::Failed } else { Exit::Done })
}

fn show(app: &App, entry: &PrunedEntry) -> Result<()> {
    app.output.object("prune", &JsonPrune::of(entry))?;
    let name = &entry.repository;
    if let Some(problem) = &entry.problem {
        let error = Refusal::new(Exit::Failed, format!("{name}: {problem}")).into();
        app.output.failure(&error, Exit::Failed.code(), None);
        return Ok(());
    }
    if entry.removed {
        let would = if entry.dry_run { "would be " } else { "" };
        return Ok(app.output.result(format_args!("{name}: {would}removed, as requested"))?);
    }
    if let Some(until_ns) = entry.frozen_until_ns {
        return Ok(app.output.result(format_args!(
            "{name}: the clock was set, or the server was off for long: nothing goes before {}",
            local_time(until_ns)
        ))?);
    }
    if let Some(alarm) = &entry.alarm {
        app.output.result(format_args!(
            "{name}: automatic deletion is paused: {alarm}; to resume it: `holdall admin resume {name}`"
        ))?;
    }
    let would = if entry.dry_run { "would be " } else { "" };
    for snapshot in &entry.forgotten {
        app.output.result(format_args!(
            "{name}: {} of {} {would}forgotten",
            snapshot.id.get(..10).unwrap_or_default(),
            date_of(snapshot)
        ))?;
    }
    app.output.result(format_args!(
        "{name}: {} kept, {} {would}forgotten; {} stored, {} {would}freed, {} waiting",
        counted(entry.snapshots_kept, "snapshot"),
        count(entry.forgotten.len() as u64),
        size(entry.stored_before_bytes),
        size(entry.stored_before_bytes.saturating_sub(entry.stored_after_bytes)),
        size(entry.waiting_bytes),
    ))?;
    Ok(())
}

/// A prune as programs see it.
#[derive(Debug, Serialize)]
struct JsonPrune<'a> {
    repository: &'a str,
    dry_run: bool,
    removed: bool,
    snapshots_forgotten: Vec<&'a str>,
    snapshots_kept: u64,
    stored_before_bytes: u64,
    stored_after_bytes: u64,
    deleted_packs: u64,
    condemned_packs: u64,
    waiting_packs: u64,
    waiting_bytes: u64,
    next_due: Option<String>,
    frozen_until: Option<String>,
    alarm: Option<&'a str>,
    problem: Option<&'a str>,
}

impl<'a> JsonPrune<'a> {
    fn of(entry: &'a PrunedEntry) -> Self {
        Self {
            repository: &entry.repository,
            dry_run: entry.dry_run,
            removed: entry.removed,
            snapshots_forgotten: entry.forgotten.iter().map(|one| &one.id[..]).collect(),
            snapshots_kept: entry.snapshots_kept,
            stored_before_bytes: entry.stored_before_bytes,
            stored_after_bytes: entry.stored_after_bytes,
            deleted_packs: entry.deleted_packs,
            condemned_packs: entry.condemned_packs,
            waiting_packs: entry.waiting_packs,
            waiting_bytes: entry.waiting_bytes,
            alarm: entry.alarm.as_deref(),
            next_due: entry.next_due_ns.map(rfc3339),
            frozen_until: entry.frozen_until_ns.map(rfc3339),
            problem: entry.problem.as_deref(),
        }
    }
}
