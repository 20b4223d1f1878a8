//! `holdall copy`.

use std::time::Instant;

use anyhow::Result;
use holdall_diagnosis::{Forecast, Side, Usage, UsageCounters, judge, limited_side};
use holdall_engine::{Copied, Copier, CopyOptions, CopySummary, Snapshot, UnlockedRepository};
use holdall_format::RecordHash;
use holdall_meter::{Layer, Verdict, per_second};
use holdall_state::Receipts;
use serde::Serialize;

use super::backup::{cores, tell_lost};
use crate::app::App;
use crate::arguments::filter::Filter;
use crate::arguments::sources::snapshot_name;
use crate::exit::{self, Exit, Refusal};
use crate::opening::connection::Connection;
use crate::opening::open;
use crate::opening::second::{Second, SecondKey, about, find_damage_in};
use crate::report::audits;
use crate::report::listing;
use crate::terminal::output::{Output, Shown, count, counted, duration, rfc3339, size};
use crate::terminal::progress::watched;

/// Says how a server keeps copies: its rules run without being asked.
const KEPT_BY_A_SERVER: &str = "the server's rules keep these copies by the dates of their originals, and delete the \
    others once the server's lock (usually 30 days) is over; `holdall tag SNAP --pin` keeps one whatever they say";

/// Copies snapshots from another repository into this one, each with keys of its own
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall copy --from https://nas:7443 -r /mnt/disk --machine laptop

Without SNAP, all snapshots of the other repository are copied, oldest first. One that was copied \
before is not copied again, so the same command later copies only what is new; nor is one that comes \
back. A copy that was cut short goes on where it was.

A copy gets the tags and the pin that the snapshot has then. What `holdall tag` changes of either \
later does not follow: change both.

Rules count copies by the dates of their originals, and apart from what is backed up there. A server \
applies its rules by itself: `holdall tag SNAP --pin` keeps a copy whatever they say.

The other repository's password is read as the own one is, from --from-password-file, \
HOLDALL_FROM_PASSWORD_FILE, HOLDALL_FROM_PASSWORD_COMMAND or HOLDALL_FROM_PASSWORD.

Files keep the cuts that they have: a large file that was copied shares its content with other \
copies of it, not with what is backed up here directly; small files share with both.

Exit codes: 0 done, 1 failed (nothing committed of the snapshot at hand), 2 wrong usage, 3 done, \
but a receipt could not be kept, 10 no such repository, 11 repository in use, 12 wrong password, \
13 not allowed, 14 server unreachable, 20 damage found: the snapshots that have it were not copied, \
or one of both repositories lost one, 130 interrupted")]
pub(crate) struct Args {
    /// The repository to copy from: a directory, or https://HOST:PORT/NAME
    #[arg(long, value_name = "REPO", env = "HOLDALL_FROM_REPOSITORY")]
    from: String,
    #[command(flatten)]
    from_key: SecondKey,
    /// `latest`, or the beginning of a snapshot's id [default: all]
    #[arg(value_name = "SNAP", value_parser = snapshot_name)]
    snapshots: Vec<String>,
    #[command(flatten)]
    filter: Filter,
    /// Skips opening each block again before it is sent, a check that finds faulty memory or a faulty processor
    #[arg(long)]
    no_self_check: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    let begun = Instant::now();
    let filter = args.filter.resolve()?;
    let Second { app: from, access: source, .. } =
        args.from_key.open(app, &args.from, args.connection.patience())?;
    let destination = open::access_with(app, args.connection.patience())?;
    check_different(&source, &destination)?;
    args.connection.tell_idle_limit(app);
    let shown = listing::shown_as(&from, &source, |error| about(error, &args.from))?;
    let wanted = match args.snapshots.is_empty() {
        true => shown.snapshots.iter().filter(|snapshot| filter.takes(snapshot)).collect(),
        false => {
            let chosen = shown.chosen(&source, &args.snapshots, &filter);
            chosen.map_err(|error| about(error, &args.from))?
        }
    };
    tell_lost(app, &destination);
    let streams = args.connection.streams();
    let self_check = !args.no_self_check;
    let options = CopyOptions { streams, self_check, cores: cores(), ..CopyOptions::default() };
    let mut copying = Copying {
        app,
        from: &args.from,
        destination: &destination,
        copier: Copier::new(&source, &shown.snapshots, &destination, options)?,
        sums: Sums::default(),
        unsaid: None,
        is_incomplete: false,
    };
    wanted.into_iter().try_for_each(|snapshot| copying.copy(snapshot))?;
    copying.sums.total_duration = begun.elapsed().as_secs_f64();
    let exit = copying.end()?;
    audits::tell(app, &destination);
    Ok(exit)
}

fn check_different(
    source: &UnlockedRepository,
    destination: &UnlockedRepository,
) -> Result<(), Refusal> {
    if source.config().repository == destination.config().repository {
        let same = Refusal::new(Exit::Usage, "both are the same repository");
        return Err(same.hint("name the one to copy from with --from, the other with -r"));
    }
    Ok(())
}

/// What was done so far.
#[derive(Debug, Default, Serialize)]
struct Sums {
    copied: u64,
    already_copied: u64,
    total_items_processed: u64,
    total_bytes_processed: u64,
    data_added: u64,
    data_stored: u64,
    bytes_sent: u64,
    bytes_received: u64,
    total_duration: f64,
    errors: u64,
}

struct Copying<'a> {
    app: &'a App,
    /// The repository to copy from, as it was named.
    from: &'a str,
    destination: &'a UnlockedRepository,
    copier: Copier<'a>,
    sums: Sums,
    /// Why something could not be said: what is left to copy is copied all the same.
    unsaid: Option<anyhow::Error>,
    /// Whether a receipt could not be kept.
    is_incomplete: bool,
}

impl Copying<'_> {
    /// Copies one snapshot. One that is damaged is told and counted.
    fn copy(&mut self, snapshot: &Snapshot) -> Result<()> {
        let run = self.app.run();
        let before = UsageCounters::now(&run);
        let copied =
            watched(&self.app.output, &run, Forecast::typical, || self.copier.copy(snapshot, &run));
        let usage = UsageCounters::now(&run).since(&before);
        match copied {
            Ok(Copied::Before(id)) => {
                self.sums.already_copied += 1;
                self.say(|output| told_before(output, snapshot, &id));
                Ok(())
            }
            Ok(Copied::Now(summary)) => {
                let receipts = Receipts::in_state(&self.app.folders.state);
                if let Err(error) = receipts.remember(self.destination, &summary.stored_record) {
                    let what = "the copy was committed, but its receipt could not be kept";
                    let error = anyhow::Error::from(error).context(what);
                    self.app.output.failure(&error, Exit::Incomplete.code(), None);
                    self.is_incomplete = true;
                }
                self.sums.add(&summary);
                self.say(|output| told(output, snapshot, &summary, &usage));
                Ok(())
            }
            Err(error) => {
                let id = short(&snapshot.id);
                let what = format!("snapshot {id} was not copied");
                let error = anyhow::Error::from(error).context(what);
                if exit::exit_of(&error) != Exit::Damage {
                    return Err(error);
                }
                self.sums.errors += 1;
                let hint = find_damage_in(self.from);
                self.app.output.failure(&error, Exit::Damage.code(), Some(&hint));
                Ok(())
            }
        }
    }

    /// Says something, unless that failed before.
    fn say(&mut self, say: impl FnOnce(&Output) -> Result<()>) {
        if self.unsaid.is_none() {
            self.unsaid = say(&self.app.output).err();
        }
    }

    /// Says what was done altogether.
    fn end(mut self) -> Result<Exit> {
        let sums = std::mem::take(&mut self.sums);
        self.say(|output| report(output, &sums));
        if sums.copied > 0 && !self.destination.is_in_directory() {
            self.app.output.note(KEPT_BY_A_SERVER);
        }
        match self.unsaid {
            _ if sums.errors > 0 => Ok(Exit::Damage),
            Some(error) => Err(error),
            None if self.is_incomplete => Ok(Exit::Incomplete),
            None => Ok(Exit::Done),
        }
    }
}

impl Sums {
    fn add(&mut self, done: &CopySummary) {
        self.copied += 1;
        self.total_items_processed += done.items;
        self.total_bytes_processed = self.total_bytes_processed.saturating_add(done.bytes);
        self.data_added += done.data_added;
        self.data_stored += done.data_stored;
        self.bytes_sent += done.bytes_sent;
        self.bytes_received += done.bytes_received;
    }
}

fn told_before(output: &Output, snapshot: &Snapshot, id: &RecordHash) -> Result<()> {
    output.object("copy", &JsonCopy::new(snapshot, id, None))?;
    output.say(format_args!("{}: copied before, as {}", short(&snapshot.id), short(id)))?;
    Ok(())
}

fn told(output: &Output, snapshot: &Snapshot, done: &CopySummary, usage: &Usage) -> Result<()> {
    let verdict = judge(done.items, done.bytes, done.seconds, done.stages.clone(), usage);
    let json = JsonCopy::new(snapshot, &done.snapshot_id, Some((done, &verdict)));
    output.object("copy", &json)?;
    let paths = snapshot.secret.paths.iter().map(|path| Shown(path).to_string());
    let limit = match verdict.limited_by {
        Layer::Nothing => String::new(),
        layer => format!("; limited by {layer}{}", limited_side(&verdict).map_or("", Side::words)),
    };
    output.say(format_args!(
        "{}: copied as {}: {} of {}; {}, {} in {}; {} added, {} sent{limit}",
        short(&snapshot.id),
        short(&done.snapshot_id),
        paths.collect::<Vec<_>>().join(", "),
        Shown(snapshot.secret.host.as_bytes()),
        counted(done.items, "item"),
        size(done.bytes),
        duration(done.seconds),
        size(done.data_added),
        size(done.bytes_sent),
    ))?;
    Ok(())
}

fn report(output: &Output, sums: &Sums) -> Result<()> {
    output.object("summary", sums)?;
    output.say(format_args!(
        "{} copied, {} copied before, {} failed: {} in {}, {} sent",
        count(sums.copied),
        count(sums.already_copied),
        count(sums.errors),
        size(sums.total_bytes_processed),
        duration(sums.total_duration),
        size(sums.bytes_sent),
    ))?;
    Ok(())
}

fn short(id: &RecordHash) -> String {
    id.to_string().chars().take(10).collect()
}

/// A copy as programs see it.
#[derive(Serialize)]
struct JsonCopy<'a> {
    source_id: String,
    snapshot_id: String,
    already_copied: bool,
    original_received: String,
    host: &'a str,
    #[serde(flatten)]
    measured: Option<Measured<'a>>,
}

/// What copying it took.
#[derive(Serialize)]
struct Measured<'a> {
    total_items_processed: u64,
    total_bytes_processed: u64,
    data_added: u64,
    data_stored: u64,
    bytes_sent: u64,
    bytes_received: u64,
    total_duration: f64,
    items_per_second: f64,
    bytes_per_second: f64,
    verdict: &'a Verdict,
    limited_side: Option<Side>,
}

impl<'a> JsonCopy<'a> {
    fn new(
        snapshot: &'a Snapshot,
        snapshot_id: &RecordHash,
        done: Option<(&CopySummary, &'a Verdict)>,
    ) -> Self {
        Self {
            source_id: snapshot.id.to_string(),
            snapshot_id: snapshot_id.to_string(),
            already_copied: done.is_none(),
            original_received: rfc3339(snapshot.taken_ns()),
            host: &snapshot.secret.host,
            measured: done.map(|(done, verdict)| Measured {
                total_items_processed: done.items,
                total_bytes_processed: done.bytes,
                data_added: done.data_added,
                data_stored: done.data_stored,
                bytes_sent: done.bytes_sent,
                bytes_received: done.bytes_received,
                total_duration: done.seconds,
                items_per_second: per_second(done.items, done.seconds),
                bytes_per_second: per_second(done.bytes, done.seconds),
                verdict,
                limited_side: limited_side(verdict),
            }),
        }
    }
}
