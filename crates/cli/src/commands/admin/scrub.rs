//! `holdall admin scrub`.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use holdall_server::admin::{self, ScrubbedEntry};
use serde::Serialize;

use crate::app::App;
use crate::clock::SystemClock;
use crate::exit::{Exit, Refusal};
use crate::output::{count, size};

/// Reads everything again and checks hashes and references
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin scrub laptop

No key is needed: what is sealed has a hash, and what refers to what is in clear.

Exit codes: 0 everything is whole, 1 failed, 2 wrong usage, 20 damage found")]
pub(crate) struct Args {
    /// One repository; all of them without
    #[arg(value_name = "REPOSITORY")]
    repository: Option<String>,
}

pub(crate) fn run(args: &Args, data: &Path, app: &App) -> Result<Exit> {
    let scrubbed = admin::scrub(data, args.repository.as_deref(), Arc::new(SystemClock))?;
    scrubbed.iter().try_for_each(|entry| show(app, entry))?;
    let has_damage = scrubbed.iter().any(|entry| !entry.damaged.is_empty());
    let has_failed = scrubbed.iter().any(|entry| entry.problem.is_some());
    Ok(match (has_damage, has_failed) {
        (true, _) => Exit::Damage,
        (false, true) => Exit::Failed,
        (false, false) => Exit::Done,
    })
}

fn show(app: &App, entry: &ScrubbedEntry) -> Result<()> {
    #[derive(Serialize)]
    struct JsonScrub<'a> {
        repository: &'a str,
        packs: u64,
        blocks: u64,
        objects: u64,
        snapshots: u64,
        bytes: u64,
        damaged: &'a [String],
        problem: Option<&'a str>,
    }
    let ScrubbedEntry { repository, packs, blocks, objects, snapshots, bytes, damaged, problem } =
        entry;
    let object = JsonScrub {
        repository,
        packs: *packs,
        blocks: *blocks,
        objects: *objects,
        snapshots: *snapshots,
        bytes: *bytes,
        damaged,
        problem: problem.as_deref(),
    };
    app.output.object("scrub", &object)?;
    let wrong = |wrong: &String, exit| Refusal::new(exit, format!("{repository}: {wrong}")).into();
    for damage in damaged {
        app.damage(&wrong(damage, Exit::Damage));
    }
    if let Some(problem) = problem {
        app.output.failure(&wrong(problem, Exit::Failed), Exit::Failed.code(), None);
    }
    if damaged.is_empty() && problem.is_none() {
        app.output.result(format_args!(
            "{repository}: {} snapshots, {} objects in {} blocks, {} read: all whole",
            count(*snapshots),
            count(*objects),
            count(*blocks),
            size(*bytes)
        ))?;
    }
    Ok(())
}
