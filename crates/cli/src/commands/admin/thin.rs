//! `holdall admin thin`.

use std::path::Path;

use anyhow::Result;
use holdall_server::admin::Thin;
use serde::Serialize;

use super::{ask, date_of};
use crate::app::App;
use crate::exit::Exit;
use crate::terminal::output::{count, counted, local_time};

/// Offers to delete snapshots of a repository that is full
///
/// It keeps the last snapshot of each of 7 days, 4 weeks and every month, and what a lock or a pin protects.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin thin laptop             (lists what it would delete)
         holdall admin thin laptop --confirm   (requests the deletion)

The deletion waits as any other does: `holdall admin pending` lists it, and `holdall admin cancel` \
cancels it.

Exit codes: 0 done, 1 failed, 2 wrong usage")]
pub(crate) struct Args {
    /// The repository's name
    #[arg(value_name = "REPOSITORY")]
    repository: String,
    /// Asks for the deletion
    #[arg(long)]
    confirm: bool,
}

pub(crate) fn run(args: &Args, data: &Path, app: &App) -> Result<Exit> {
    #[derive(Serialize)]
    struct JsonThinning<'a> {
        repository: &'a str,
        snapshots: Vec<&'a str>,
        snapshots_kept: u64,
        deletion: Option<u64>,
    }
    let name = &args.repository;
    let thinning = ask(data, &Thin { repository: name.clone(), confirmed: args.confirm })?;
    let object = JsonThinning {
        repository: name,
        snapshots: thinning.snapshots.iter().map(|one| &one.id[..]).collect(),
        snapshots_kept: thinning.kept,
        deletion: thinning.deletion.as_ref().map(|deletion| deletion.number),
    };
    app.output.object("thinning", &object)?;
    for snapshot in &thinning.snapshots {
        app.output.result(format_args!(
            "{} of {}",
            snapshot.id.get(..10).unwrap_or_default(),
            date_of(snapshot)
        ))?;
    }
    let goes = counted(thinning.snapshots.len() as u64, "snapshot");
    app.output.say(match &thinning.deletion {
        Some(deletion) => format!(
            "{name}: {goes} will go on {}, {} stay; `holdall admin cancel {}` takes it back",
            local_time(deletion.due_ns),
            count(thinning.kept),
            deletion.number
        ),
        None if thinning.snapshots.is_empty() => {
            format!("{name}: nothing could go, {} would stay", counted(thinning.kept, "snapshot"))
        }
        None => format!(
            "{name}: {goes} could go, {} would stay; --confirm asks for it",
            count(thinning.kept)
        ),
    })?;
    Ok(Exit::Done)
}
