//! `holdall stats`.

use anyhow::Result;
use holdall_engine::Snapshot;
use holdall_protocol::Usage;
use serde::Serialize;

use crate::app::App;
use crate::arguments::filter::Filter;
use crate::exit::Exit;
use crate::opening::open;
use crate::report::listing;
use crate::terminal::output::{count, counted, size};

/// Tells how much the snapshots hold, and how much is stored for them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall stats --tag weekly

With --machine, --path or --tag, items and bytes are those of the chosen snapshots; what is stored \
is always the whole repository's, since snapshots share it.

Exit codes: 0 done, 1 failed, 2 wrong usage, 10 no such repository, 11 repository in use, 12 wrong \
password, 13 not allowed, 14 server unreachable, 20 a snapshot that this machine remembers is \
missing, or a record is damaged, 130 interrupted")]
pub(crate) struct Args {
    #[command(flatten)]
    filter: Filter,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    let filter = args.filter.resolve()?;
    let access = open::access(app)?;
    let listed = listing::shown(app, &access)?.snapshots;
    let chosen: Vec<_> = listed.iter().filter(|one| filter.takes(one)).collect();
    let usage = access.repository().usage()?;
    let stats = Stats::new(&chosen, chosen.len() == listed.len(), &usage);
    app.output.object("summary", &stats)?;
    stats.words().into_iter().try_for_each(|line| app.output.result(line))?;
    Ok(Exit::Done)
}

/// What there is, and what is stored for it.
#[derive(Debug, PartialEq, Serialize)]
struct Stats {
    snapshots: u64,
    /// Of the newest of them.
    newest_items: u64,
    newest_bytes: u64,
    /// Of all of them, each counted in full.
    total_items: u64,
    total_bytes: u64,
    stored_bytes: u64,
    /// Plain bytes of all snapshots for each that is stored; none for a part of them, or of nothing.
    ratio: Option<f64>,
    packs: u64,
    blocks: u64,
    objects: u64,
    quota_bytes: Option<u64>,
}

impl Stats {
    /// Sums over the chosen snapshots, oldest first.
    fn new(chosen: &[&Snapshot], are_all: bool, usage: &Usage) -> Self {
        let newest = chosen.last().map(|newest| &newest.secret);
        let sum = |of: fn(&Snapshot) -> u64| {
            chosen.iter().map(|one| of(one)).fold(0, u64::saturating_add)
        };
        let total_bytes = sum(|one| one.secret.bytes);
        let has_ratio = are_all && usage.stored_bytes > 0 && !chosen.is_empty();
        Self {
            snapshots: chosen.len() as u64,
            newest_items: newest.map_or(0, |newest| newest.items),
            newest_bytes: newest.map_or(0, |newest| newest.bytes),
            total_items: sum(|one| one.secret.items),
            total_bytes,
            stored_bytes: usage.stored_bytes,
            ratio: has_ratio.then(|| total_bytes as f64 / usage.stored_bytes as f64),
            packs: usage.packs,
            blocks: usage.blocks,
            objects: usage.objects,
            quota_bytes: usage.quota_bytes,
        }
    }

    fn words(&self) -> Vec<String> {
        let of = |items, bytes| format!("{}, {}", counted(items, "item"), size(bytes));
        let ratio =
            self.ratio.map(|ratio| format!(" (deduplicated and compressed, {ratio:.2} : 1)"));
        let quota = self.quota_bytes.map(|quota| format!(" of {}", size(quota)));
        vec![
            format!("{:<16} {}", "snapshots", count(self.snapshots)),
            format!("{:<16} {}", "the newest", of(self.newest_items, self.newest_bytes)),
            format!("{:<16} {}", "all together", of(self.total_items, self.total_bytes)),
            format!(
                "{:<16} {}{}{}",
                "stored",
                size(self.stored_bytes),
                quota.unwrap_or_default(),
                ratio.unwrap_or_default()
            ),
            format!(
                "{:<16} {}, {}, {}",
                "in",
                counted(self.packs, "pack"),
                counted(self.blocks, "block"),
                counted(self.objects, "object")
            ),
        ]
    }
}
