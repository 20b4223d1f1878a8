//! `holdall compact`.

use anyhow::Result;
use holdall_engine::CompactReport;
use serde::Serialize;

use super::prune;
use crate::app::App;
use crate::deletions::{self, TokenArgs};
use crate::exit::Exit;
use crate::opening::open::{self, Patience};
use crate::terminal::output::{count, counted, rfc3339, size};

/// Repacks blocks that are mostly unused
///
/// Content is sealed in blocks of about 1 MiB, and a prune keeps or deletes a block as a whole. This opens
/// blocks of which at most half is needed, seals what is needed in new ones, and deletes the old ones.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall compact --dry-run

It needs the password, and room for the new blocks. In a directory it prunes afterwards. On a server it \
needs an administrator's token (`holdall admin token`, then --admin-token-file FILE). There the old blocks \
stay for a week and serve if a new one cannot be read; until then `holdall admin cancel` cancels it.

Exit codes: 0 done, 1 failed, 2 wrong usage, 10 no such repository, 11 in use, 12 wrong password, 13 not \
allowed, 14 server unreachable, 20 damage found, 130 interrupted")]
pub(crate) struct Args {
    /// Says how many such blocks there are, and changes nothing
    #[arg(short = 'n', long)]
    dry_run: bool,
    #[command(flatten)]
    token: TokenArgs,
}

/// What was compacted, as programs see it.
#[derive(Debug, Serialize)]
struct Summary {
    dry_run: bool,
    sparse_blocks: u64,
    objects: u64,
    living_objects: u64,
    compacted_blocks: u64,
    before_bytes: u64,
    after_bytes: u64,
    damaged_blocks: u64,
    /// The numbers of the deletions that wait.
    deletions: Vec<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    due: Option<String>,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    let token = args.token.read(&app.interrupt)?;
    let (access, keeper) = open::access_and_keeper(app, Patience::default())?;
    prune::check_whole(
        app,
        access.repository().as_ref(),
        access.config().repository,
        access.is_in_directory(),
    )?;
    let run = app.run();
    let report = keeper.compact(token.as_ref(), |compacting| {
        holdall_engine::compact(&access, compacting, args.dry_run, &run)
    })??;
    let is_pruned = token.is_none() && report.blocks > 0;
    // Pruned before anything is told: telling it may fail.
    let pruned = is_pruned.then(|| keeper.prune(None, false));
    let told = tell(app, &report, args.dry_run);
    app.output.told(told, "what is sparse was compacted", args.dry_run)?;
    if let Some(pruned) = pruned {
        prune::tell_done(app, &pruned?, false)?;
    }
    Ok(if report.damaged_blocks > 0 { Exit::Damage } else { Exit::Done })
}

fn tell(app: &App, report: &CompactReport, dry_run: bool) -> Result<()> {
    let summary = Summary {
        dry_run,
        sparse_blocks: report.sparse_blocks,
        objects: report.objects,
        living_objects: report.living_objects,
        compacted_blocks: report.blocks,
        before_bytes: report.before_bytes,
        after_bytes: report.after_bytes,
        damaged_blocks: report.damaged_blocks,
        deletions: report.waiting.iter().map(|waiting| waiting.number).collect(),
        due: report.waiting.iter().map(|waiting| waiting.due_ns).max().map(rfc3339),
    };
    app.output.object("summary", &summary)?;
    app.output.say(format_args!(
        "mostly dead: {}, in which {} of {} are needed",
        counted(report.sparse_blocks, "block"),
        count(report.living_objects),
        counted(report.objects, "object")
    ))?;
    if !dry_run {
        app.output.say(format_args!(
            "{} of them, {}, gave way to {}",
            count(report.blocks),
            size(report.before_bytes),
            size(report.after_bytes)
        ))?;
    }
    if report.damaged_blocks > 0 {
        app.output.note(format!(
            "{} blocks do not open to what they should hold and stay as they are: run `holdall check \
             --verify`",
            count(report.damaged_blocks)
        ));
    }
    for waiting in &report.waiting {
        app.output.note(deletions::in_words(waiting));
    }
    Ok(())
}
