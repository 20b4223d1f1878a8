//! `holdall admin scrub`.

use std::path::Path;

use anyhow::Result;
use holdall_server::admin::{AlsoRepair, Scrub, ScrubbedEntry};
use serde::Serialize;

use super::ask;
use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::report::repairs::RepairArgs;
use crate::terminal::output::{counted, size};

/// Reads everything again and checks hashes and references
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin scrub laptop

With --repair -n it says what of the damage could be repaired, with --repair it repairs that, and with \
--parity 5 it keeps 5 % of parity for each pack from then on.

No key is needed: what is sealed has a hash, and what refers to what is in clear. What cannot be \
repaired counts as missing, and the next backup that has it sends it again; damaged files are kept, in \
the repository's folder `quarantine` or, of a tail, in `tails` as `NAME.damaged`.

Exit codes: 0 everything is whole, 1 failed, 2 wrong usage, 20 damage found")]
pub(crate) struct Args {
    /// One repository; all of them without
    #[arg(value_name = "REPOSITORY")]
    repository: Option<String>,
    #[command(flatten)]
    repairs: RepairArgs,
}

pub(crate) fn run(args: &Args, data: &Path, app: &App) -> Result<Exit> {
    let RepairArgs { repair, dry_run, parity } = args.repairs;
    let also = AlsoRepair { repair, dry_run, parity };
    let scrubbed = ask(data, &Scrub { repository: args.repository.clone(), also })?.scrubbed;
    scrubbed.iter().try_for_each(|entry| show(app, entry))?;
    let has_damage = scrubbed.iter().any(|entry| !entry.damaged.is_empty());
    let has_failed = scrubbed.iter().any(|entry| entry.problem.is_some());
    Ok(match (has_damage, has_failed) {
        (true, _) => Exit::Damage,
        (false, true) => Exit::Failed,
        (false, false) => Exit::Done,
    })
}

/// What was read and repaired of a repository, as programs see it.
#[derive(Serialize)]
struct JsonScrub<'a> {
    repository: &'a str,
    packs: u64,
    blocks: u64,
    objects: u64,
    snapshots: u64,
    bytes: u64,
    damaged: &'a [String],
    repaired: &'a [String],
    quarantined: &'a [String],
    parity_made: u64,
    problem: Option<&'a str>,
}

impl<'a> JsonScrub<'a> {
    fn new(entry: &'a ScrubbedEntry) -> Self {
        Self {
            repository: &entry.repository,
            packs: entry.packs,
            blocks: entry.blocks,
            objects: entry.objects,
            snapshots: entry.snapshots,
            bytes: entry.bytes,
            damaged: &entry.damaged,
            repaired: &entry.repaired,
            quarantined: &entry.quarantined,
            parity_made: entry.parity_made,
            problem: entry.problem.as_deref(),
        }
    }
}

fn show(app: &App, entry: &ScrubbedEntry) -> Result<()> {
    let repository = &entry.repository;
    app.output.object("scrub", &JsonScrub::new(entry))?;
    for repaired in &entry.repaired {
        app.output.result(format_args!("{repository}: {repaired}"))?;
    }
    for file in &entry.quarantined {
        app.output.note(format_args!("the damaged file is kept as {file}"));
    }
    let wrong = |wrong: &String, exit| Refusal::new(exit, format!("{repository}: {wrong}")).into();
    for damage in &entry.damaged {
        app.damage(&wrong(damage, Exit::Damage));
    }
    if let Some(problem) = &entry.problem {
        app.output.failure(&wrong(problem, Exit::Failed), Exit::Failed.code(), None);
    } else if entry.damaged.is_empty() {
        app.output.result(format_args!(
            "{repository}: {}, {} in {}, {} read: all whole",
            counted(entry.snapshots, "snapshot"),
            counted(entry.objects, "object"),
            counted(entry.blocks, "block"),
            size(entry.bytes)
        ))?;
    }
    Ok(())
}
