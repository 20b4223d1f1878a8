//! `holdall forget`.

use anyhow::Result;
use holdall_engine::{Listed, Snapshot, UnlockedRepository};
use holdall_format::RecordHash;
use holdall_protocol::{Buried, RepositoryError, WaitingDeletion};
use holdall_repository::retention::{OwnSnapshot, Reason, keep_own};
use holdall_state::{KnownGone, Receipts};
use holdall_sys::{Clock, SystemClock};
use jiff::tz::TimeZone;
use serde::Serialize;

use super::prune;
use super::snapshots::JsonSnapshot;
use crate::app::App;
use crate::arguments::filter::{Filter, Wanted};
use crate::arguments::keep_rules::KeepRules;
use crate::arguments::sources::{not_empty, snapshot_name};
use crate::deletions::{self, TokenArgs};
use crate::exit::{Exit, Refusal};
use crate::opening::keeper::Keeper;
use crate::opening::open::{self, Patience};
use crate::report::listing;
use crate::terminal::output::{Shown, counted, local_time, rfc3339};

/// Forgets snapshots: those that are named, or those that rules do not keep
///
/// What only they held stays until `holdall prune` deletes it. Rules count for each series (what was
/// backed up together) by itself: `--keep-daily 7` keeps the last snapshot of each of the 7 newest days
/// that have one. The newest of a series, and pinned snapshots, are kept whatever the rules say.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples: holdall forget --keep-daily 7 --keep-weekly 5 --keep-monthly all --dry-run
          holdall forget --keep-last 3 --path /home/ada --prune
          holdall forget 1f2e3d

On a server, no machine forgets anything by itself: its rules and its administrator do (`holdall admin \
retention`). With an administrator's token (`holdall admin token`, then --admin-token-file FILE) it \
may ask for it; the deletion waits for a week and can be cancelled.

Exit codes: 0 done, 1 failed, or no such snapshot, 2 wrong usage, 10 no such repository, 11 in use, \
12 wrong password, 13 not allowed, 14 server unreachable, 20 damage, 130 interrupted")]
pub(crate) struct Args {
    /// Snapshots: `latest` (of those that --machine, --path and --tag take), or the beginning of an id
    #[arg(
        value_name = "SNAP",
        value_parser = snapshot_name,
        conflicts_with_all = ["rules", "keep"]
    )]
    snapshots: Vec<String>,
    #[command(flatten)]
    rules: Rules,
    #[command(flatten)]
    filter: Filter,
    /// Says what would be forgotten, and changes nothing
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Deletes afterwards what nothing needs any more, as `holdall prune` does
    #[arg(long, conflicts_with = "dry_run")]
    prune: bool,
    #[command(flatten)]
    token: TokenArgs,
}

/// What to keep.
#[derive(Debug, clap::Args)]
#[group(id = "rules", multiple = true)]
struct Rules {
    #[command(flatten)]
    keep: KeepRules,
    /// All with this tag; given several times: with any of them
    #[arg(long, value_name = "TAG", value_parser = not_empty)]
    keep_tag: Vec<String>,
}

/// What is to become of a snapshot.
struct Judged<'a> {
    snapshot: &'a Snapshot,
    /// Why it is kept; nothing if it goes.
    reasons: Vec<Reason>,
}

impl Judged<'_> {
    fn goes(&self) -> bool {
        self.reasons.is_empty()
    }
}

impl Rules {
    fn judge<'a>(&self, listed: &'a [Snapshot], filter: &Wanted<'_>) -> Vec<Judged<'a>> {
        let own = |snapshot: &Snapshot| OwnSnapshot {
            log_position: snapshot.log_position,
            series: (snapshot.machine, snapshot.series),
            received_ns: snapshot.received_ns,
            received_sure: snapshot.received_sure,
            original_ns: snapshot.is_copy().then(|| snapshot.taken_ns()),
            pinned: snapshot.pinned,
            tagged: self.keep_tag.iter().any(|tag| snapshot.secret.tags.contains(tag)),
            is_judged: filter.takes(snapshot),
        };
        let own: Vec<_> = listed.iter().map(own).collect();
        let kept = keep_own(&self.keep.policy(), &own, SystemClock.now_ns(), &TimeZone::system());
        kept.into_iter().map(|(at, reasons)| Judged { snapshot: &listed[at], reasons }).collect()
    }

    fn say_nothing(&self) -> bool {
        self.keep.policy().is_empty() && self.keep_tag.is_empty()
    }
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    if args.snapshots.is_empty() && args.rules.say_nothing() {
        let message = "nothing says which snapshots to forget";
        let hint = "name them, or say with --keep-daily 7 and the like which to keep";
        return Err(Refusal::new(Exit::Usage, message).hint(hint).into());
    }
    let (filter, token) = (args.filter.resolve()?, args.token.read(&app.interrupt)?);
    let (access, keeper) = open::access_and_keeper(app, Patience::default())?;
    let all = holdall_engine::snapshots(&access)?;
    let gone = named_gone(args, app, &access, &all, &filter)?;
    // Whoever says what is to become of what is gone has been told.
    if gone.is_empty() || gone.len() < args.snapshots.len() {
        listing::tell_damage(app, &access, &all)?;
    }
    let listed = &all.snapshots;
    let (mut lost, names) = lost_and_there(&args.snapshots, listed, &filter);
    lost.retain(|id| !gone.contains_key(id));
    let judged = if args.snapshots.is_empty() {
        refuse_damaged(&all, &keeper)?;
        args.rules.judge(listed, &filter)
    } else {
        let named = listing::chosen(&access, listed, &names, &filter)?;
        named.into_iter().map(|snapshot| Judged { snapshot, reasons: Vec::new() }).collect()
    };
    let goes = judged.iter().filter(|one| one.goes()).map(|one| one.snapshot.id);
    let goes: Vec<RecordHash> = goes.chain(lost.iter().copied()).collect();
    let waiting = match args.dry_run || goes.is_empty() {
        true => None,
        false => keeper.forget(token.as_ref(), &goes)?,
    };
    if waiting.is_none() && !args.dry_run && !goes.is_empty() {
        // Should the tombstones be lost, this computer's cache brings nothing back.
        let _ = holdall_engine::remember_tombstones(&access);
    }
    for id in gone.keys().filter(|_| !args.dry_run) {
        give_up(app, &access, &keeper, &gone, id)?;
    }
    for id in lost.iter().filter(|_| !args.dry_run) {
        app.output.note(format_args!("record {id} is given up: nothing waits for it any more"));
    }
    // Pruned before anything is told: telling it may fail.
    let pruned = args.prune.then(|| {
        prune::check_whole(
            app,
            access.repository().as_ref(),
            access.config().repository,
            access.is_in_directory(),
        )?;
        keeper.prune(token.as_ref(), false).map_err(anyhow::Error::from)
    });
    let told = tell(args, app, &judged, waiting.as_ref());
    let are = match (waiting.is_some(), goes.len()) {
        (true, _) => "will be",
        (false, 1) => "was",
        (false, _) => "were",
    };
    let count = counted(goes.len() as u64, "snapshot");
    app.output.told(told, format_args!("{count} {are} forgotten"), args.dry_run)?;
    if !listed.is_empty() && judged.iter().filter(|one| one.goes()).count() == listed.len() {
        app.output.note("with that, no snapshot is left: nothing can be restored any more");
    }
    if let Some(pruned) = pruned {
        prune::tell_done(app, &pruned?, false)?;
    }
    Ok(Exit::Done)
}

/// Gives up a record that is gone and that this computer knows.
fn give_up(
    app: &App,
    access: &UnlockedRepository,
    keeper: &Keeper,
    gone: &KnownGone,
    id: &RecordHash,
) -> Result<()> {
    match holdall_engine::give_up(access.cache(), keeper.to_give_up()?, &gone[id])? {
        Buried::ByTombstone => {
            app.output.note(format_args!("record {id} is given up: nothing waits for it any more"));
        }
        Buried::Noted => {
            Receipts::in_state(&app.folders.state).give_up(access.config().repository, id)?;
            app.output.note(format_args!(
                "record {id} is given up: this computer does not wait for it any more. Another record has its place, so \
                 any other computer that saw it reports it until `holdall forget {id}` is run there, too"
            ));
        }
    }
    Ok(())
}

/// Those of the records that are gone, and that this computer knows, whose whole ids are among the names.
fn named_gone(
    args: &Args,
    app: &App,
    access: &UnlockedRepository,
    all: &Listed,
    filter: &Wanted<'_>,
) -> Result<KnownGone> {
    let mut gone = Receipts::in_state(&app.folders.state).known_gone(access, all)?;
    let is_named = |id: &RecordHash| args.snapshots.iter().any(|name| *name == id.to_string());
    gone.retain(|id, _| filter.is_empty() && is_named(id));
    Ok(gone)
}

/// Whole ids of which there is no snapshot, which are those of lost records or of nothing; and all other names.
/// Of a lost record nothing is known that a filter could ask for.
fn lost_and_there<'a>(
    names: &'a [String],
    listed: &[Snapshot],
    filter: &Wanted<'_>,
) -> (Vec<RecordHash>, Vec<&'a String>) {
    let (mut lost, mut others) = (Vec::new(), Vec::new());
    for name in names {
        match name.parse::<RecordHash>() {
            Ok(id) if filter.is_empty() && listed.iter().all(|one| one.id != id) => lost.push(id),
            _ => others.push(name),
        }
    }
    (lost, others)
}

/// Refuses to go by rules where a record is lost or cannot be read: it may be what keeps a snapshot. The same
/// where any other damage keeps a prune from deleting: what is older may be all that is left.
fn refuse_damaged(listed: &Listed, keeper: &Keeper) -> Result<()> {
    if !listed.is_all() {
        let message =
            "rules delete nothing while a record is damaged or lost: it may be a pin or tags";
        let hint = "`holdall check` names it; snapshots that are named are forgotten nevertheless";
        return Err(Refusal::new(Exit::Damage, message).hint(hint).into());
    }
    match keeper.prune(None, true) {
        Err(error @ RepositoryError::Damaged { .. }) => Err(error.into()),
        // Whatever else it fails of does not say that anything is damaged.
        _ => Ok(()),
    }
}

/// A snapshot and what becomes of it, as programs see it.
#[derive(Serialize)]
struct JsonJudged<'a> {
    #[serde(flatten)]
    snapshot: JsonSnapshot<'a>,
    forgotten: bool,
    reasons: Vec<String>,
}

#[derive(Serialize)]
struct Summary {
    dry_run: bool,
    snapshots_forgotten: usize,
    snapshots_kept: usize,
    /// The number of the deletion that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    deletion: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    due: Option<String>,
}

fn tell(
    args: &Args,
    app: &App,
    judged: &[Judged<'_>],
    waiting: Option<&WaitingDeletion>,
) -> Result<()> {
    judged.iter().try_for_each(|one| tell_judged(app, one))?;
    let forgotten = judged.iter().filter(|one| one.goes()).count();
    let kept = judged.len() - forgotten;
    let summary = Summary {
        dry_run: args.dry_run,
        snapshots_forgotten: forgotten,
        snapshots_kept: kept,
        deletion: waiting.map(|waiting| waiting.number),
        due: waiting.map(|waiting| rfc3339(waiting.due_ns)),
    };
    app.output.object("summary", &summary)?;
    let would = match (args.dry_run, waiting) {
        (true, _) => "would be ",
        (false, Some(_)) => "will be ",
        (false, None) => "",
    };
    app.output.say(format_args!("{forgotten} {would}forgotten, {kept} kept"))?;
    if let Some(waiting) = waiting {
        app.output.note(deletions::in_words(waiting));
    } else if forgotten > 0 && !args.prune && !args.dry_run {
        app.output.note("what only they held stays until `holdall prune`");
    }
    Ok(())
}

fn tell_judged(app: &App, one: &Judged<'_>) -> Result<()> {
    let reasons: Vec<String> = one.reasons.iter().map(ToString::to_string).collect();
    let (snapshot, forgotten) = (JsonSnapshot::new(one.snapshot), one.goes());
    let said = match forgotten {
        true => "forget".to_owned(),
        false => format!("keep   {}", reasons.join(", ")),
    };
    app.output.object("snapshot", &JsonJudged { snapshot, forgotten, reasons })?;
    let paths = one.snapshot.secret.paths.iter().map(|path| Shown(path).to_string());
    app.output.result(format_args!(
        "{:<10} {}  {}  {said}",
        one.snapshot.id.to_string().get(..10).unwrap_or_default(),
        local_time(one.snapshot.taken_ns()),
        paths.collect::<Vec<_>>().join(", "),
    ))?;
    Ok(())
}
