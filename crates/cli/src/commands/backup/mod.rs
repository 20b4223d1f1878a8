//! `holdall backup`: `options` makes what the engine is asked for from what was typed, and `command_source` runs the
//! command whose output is a source.

mod command_source;
mod options;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use anyhow::Result;
use clap::builder::NonEmptyStringValueParser;
use holdall_diagnosis::runs::{RunEnd, RunKind};
use holdall_diagnosis::speed_history::{Kind, Run, backup_work, slowness_in_words};
use holdall_diagnosis::{
    Earlier, Expected, OwnLimit, Usage, UsageCounters, followed, judge, name_own_limit,
    name_server_limit, name_shares, name_yielding, report_of_backup,
};
use holdall_engine::{
    BackupOptions, BackupSummary, EngineError, Listed, Problem, PutBack, Run as EngineRun, Source,
    UnlockedRepository, Walked,
};
use holdall_meter::cost::Slowness;
use holdall_meter::{RunCurve, Verdict, per_second};
use holdall_protocol::wire::RunReport;
use holdall_state::{FilledSources, NOT_THERE, Receipts};
use holdall_sys::thread;
use holdall_sys::{Clock, SystemClock};
use serde::Serialize;

pub(crate) use self::options::{cores, user_name, with_environment};
use super::kit_trial;
use super::noted::noted;
use super::reporting::{ToTell, reported};
use crate::app::App;
use crate::arguments::quantity;
use crate::arguments::sources::ReadAs;
use crate::deletions;
use crate::exit::{Exit, Refusal, exit_of, is_forbidden};
use crate::lab::remembered;
use crate::opening::connection::Connection;
use crate::opening::open;
use crate::opening::patience;
use crate::report::{audits, items, listing};
use crate::terminal::output::{Shown, count, counted, duration, local_time, size};
use crate::terminal::progress::counted_ahead;

/// Backs paths up into a new snapshot
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall backup /home /etc --exclude '*.o' --exclude-caches --tag daily

Patterns are those of .gitignore, from the root of the file system, and so are .holdallignore files, \
from their own folder. What the command line says of a path counts more than a .holdallignore, and \
of several patterns that match, the last one.

With --stdin-from-command NAME the output of a command becomes the file NAME in the snapshot, at its root: \
holdall backup --stdin-from-command shop.dump -- pg_dump -Fc shop. Nothing is committed unless the command ends with 0. With -n it \
is not run.

-v lists what is left out, and by which rule. With -n it also lists what is new or changed; -vv lists all.

A file that changes while it is read is stored as it was read, told with -v, and read again next \
time. If a source had something before and nothing of it is in this snapshot, its disk may not be mounted, or a rule \
leaves out too much: each backup says so and ends with 3, until something is there again or --accept-empty names it. So is, once, an empty folder below a source that was there before the last snapshot, beneath a disk. The \
snapshot is made all the same, and the one before keeps what it has.

Exit codes: 0 done, 1 failed (nothing committed), 2 wrong usage, 3 done, but some sources could \
not be read, or its receipt not be kept, 10 no such repository, 11 repository in use, 12 wrong \
password, 13 not allowed, 14 server unreachable, 20 damage found, 130 interrupted")]
pub(crate) struct Args {
    /// What to back up
    #[arg(value_name = "PATH", required_unless_present_any = ["files_from", "stdin_from_command", "last"])]
    paths: Vec<PathBuf>,
    /// More paths, which may begin with -; or the command of --stdin-from-command
    #[arg(value_name = "COMMAND", last = true)]
    last: Vec<OsString>,
    /// Backs up what a command prints, as a file of this name, if the command ends with 0
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with_all = [
            "paths", "files_from", "exclude", "iexclude", "exclude_file", "exclude_caches", "exclude_if_present",
            "exclude_larger_than", "one_file_system", "use_fs_snapshot", "read_as", "accept_empty",
        ]
    )]
    stdin_from_command: Option<String>,
    /// Leaves out what matches this pattern
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// The same, without regard to upper and lower case
    #[arg(long, value_name = "PATTERN")]
    iexclude: Vec<String>,
    /// Leaves out what matches a pattern of this file, one a line
    #[arg(long, value_name = "FILE")]
    exclude_file: Vec<PathBuf>,
    /// Leaves out the content of folders tagged with a CACHEDIR.TAG
    #[arg(long)]
    exclude_caches: bool,
    /// Leaves out the content of folders that hold something of this name
    #[arg(long, value_name = "NAME", value_parser = options::mark)]
    exclude_if_present: Vec<String>,
    /// Leaves out files with more bytes than this, such as 500M or 2G; one that is named as PATH is taken
    #[arg(long, value_name = "SIZE", value_parser = quantity::bytes)]
    exclude_larger_than: Option<u64>,
    /// Does not go into other file systems
    #[arg(short = 'x', long)]
    one_file_system: bool,
    /// Reads snapshots of the file system, so that all files of a subvolume are of one moment (btrfs, as root)
    #[arg(long)]
    use_fs_snapshot: bool,
    /// Reads more paths from this file, one a line; - is standard input
    #[arg(long, value_name = "FILE")]
    files_from: Vec<PathBuf>,
    /// Tags the snapshot
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Records this host name [default: this computer's]
    #[arg(long, value_name = "HOST", value_parser = NonEmptyStringValueParser::new())]
    host: Option<String>,
    /// Records what lies at OLD as if it lay at NEW
    #[arg(long = "as", value_name = "OLD=NEW", value_parser = ReadAs::parse)]
    read_as: Vec<ReadAs>,
    /// Takes it as meant that nothing of this source is there, or wanted
    #[arg(long, value_name = "PATH")]
    accept_empty: Vec<PathBuf>,
    /// Only says what would be done
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Reads all files, those that seem unchanged too
    #[arg(long)]
    read_all: bool,
    /// Looks only where this file says that something may have changed, as the agent writes it
    #[arg(long, value_name = "FILE", hide = true)]
    changes: Option<PathBuf>,
    /// Skips opening each block again before it is sent, a check that finds faulty memory or a faulty processor
    #[arg(long)]
    no_self_check: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    if args.dry_run {
        return back_up(args, app, &mut RunEnd::default(), &mut ToTell::default());
    }
    run_after(args, app, &|| Ok(()), &mut None)
}

/// Backs up after `before`, which is part of the run: if it fails, so does the backup, for status and for the server too.
///
/// # Errors
/// Those of `before` and of the backup. `unread` gets the first thing that could not be read.
pub(crate) fn run_after(
    args: &Args,
    app: &App,
    before: &dyn Fn() -> Result<()>,
    unread: &mut Option<String>,
) -> Result<Exit> {
    let backed_up = reported(app, |to_tell| {
        noted(app, RunKind::Backup, &args.named(), |end| {
            before()?;
            let exit = back_up(args, app, end, to_tell)?;
            *unread = end.first_problems.first().cloned();
            Ok(exit)
        })
    });
    backed_up.map_err(with_way_on)
}

/// Says of a backup that was interrupted that nothing has to be sent twice.
fn with_way_on(error: anyhow::Error) -> anyhow::Error {
    match exit_of(&error) {
        Exit::Interrupted => Refusal::new(Exit::Interrupted, "interrupted")
            .hint("what was sent is kept: the same command goes on from there")
            .into(),
        _ => error,
    }
}

/// Backs up, and fills in what status wants to know of it, and what the server is told.
fn back_up(args: &Args, app: &App, end: &mut RunEnd, to_tell: &mut ToTell) -> Result<Exit> {
    let command = args.command(app)?;
    let named = args.named();
    let paths = named.iter().map(|path| path.as_os_str().as_bytes()).collect::<Vec<_>>();
    let (options, some_missing) = match &command {
        Some((source, command)) => (options::of_command(args, source, command)?, false),
        None => patience::looking_at(app, &paths, || options::looked_at(args, app))?,
    };
    let changes = args.changes.as_ref().and_then(|file| options::changes(file, app));
    let mut options = BackupOptions { changes, ..options };
    let (access, keeper) = open::access_and_keeper(app, args.connection.patience_from_the_start())?;
    to_tell.keeper = Some(keeper.clone());
    args.connection.tell_idle_limit(app);
    let limit = remembered::own_limit(app, &access, args.connection.upload_limit());
    let fs_snapshot = args.fs_snapshot(app, &mut options)?;
    let (done, announced) = std::thread::scope(|scope| {
        // Over a connection that the run is going to need, and begun first, since the summary counts
        // everything that crosses the wire: a far server answers this while the run waits for others.
        let announced = thread::start(scope, || deletions::announced(&keeper));
        // Told before the new snapshot's receipt takes the place of that of what was lost.
        let listed = tell_lost(app, &access);
        let done = measured(app, &access, listed.as_ref(), &options, limit);
        (done, announced.ok().and_then(|announced| announced.join().ok()).unwrap_or_default())
    });
    drop(fs_snapshot);
    let mut done = done?;
    if let Some((_, command)) = &command {
        command.tell(&app.output);
    }
    if command.is_some() && done.summary.bytes == 0 && !options.dry_run {
        app.unseen(&nothing_printed(&args.last));
    }
    *end = done.noted();
    explain(args, app, &mut done);
    let speed = match options.dry_run {
        true => Speed::expected(app, &access, &done, limit),
        false => Speed::remembered(args, app, &access, &options, &done),
    };
    to_tell.report = Some(done.reported(speed.slower_than_usual.as_ref()));
    still_committed(app, &done.summary, report(app, &done, &speed))?;
    if done.summary.parent_damaged {
        app.damage(&damaged_parent());
    }
    deletions::tell(app, &announced);
    if !options.dry_run {
        audits::tell(app, &access);
        kit_trial::remind(app);
    }
    let incomplete = some_missing || done.summary.problems > 0;
    Ok(if incomplete { Exit::Incomplete } else { Exit::Done })
}

/// That what this backup goes on from cannot be read. What it needs of that counts as stored, so this one needs
/// it too.
fn damaged_parent() -> anyhow::Error {
    let message = "the snapshot before is damaged; everything was read anew, but what is damaged counts as \
    stored, and the new \
                   snapshot may need it";
    Refusal::new(Exit::Damage, message)
        .hint("see `holdall check --verify latest`, and `holdall check --repair`; the backup after that sends \
        what is lost")
        .into()
}

/// Says what the verdict's stages cannot know: the limit that was set, and what was used of the way.
fn explain(args: &Args, app: &App, done: &mut Done) {
    let Done { summary, verdict, usage, .. } = done;
    let rate = |bytes| per_second(bytes, summary.seconds);
    let (sent, stored) = (rate(summary.bytes_sent), rate(summary.data_stored));
    let limit = ("--limit-upload", args.connection.upload_limit());
    let is_set_limit = name_own_limit(verdict, usage, limit, sent)
        || args.connection.is_yielding() && name_yielding(verdict, usage)
        || name_server_limit(verdict, usage);
    if let Some(ceilings) = remembered::ceilings(app) {
        name_shares(verdict, &ceilings, (sent, stored), is_set_limit);
    }
}

/// What the history of earlier backups says of this one.
#[derive(Default, Serialize)]
struct Speed {
    /// Of a dry run: what it would take.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<Expected>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slower_than_usual: Option<Slowness>,
}

impl Speed {
    /// What a dry run would take.
    fn expected(
        app: &App,
        access: &UnlockedRepository,
        done: &Done,
        limit: Option<OwnLimit>,
    ) -> Self {
        let repository = access.config().repository.to_string();
        let (history, ceilings) = (remembered::speed_history(app), remembered::ceilings(app));
        let earlier = Earlier::of(&history, &repository, ceilings, false);
        let addresses = |repository: &str| remembered::addresses(app, repository);
        let expected = earlier.expects(&backup_work(&done.summary), limit, addresses);
        Self { estimate: Some(expected), ..Self::default() }
    }

    /// Adds a backup to the history, and looks whether it was slow.
    fn remembered(
        args: &Args,
        app: &App,
        access: &UnlockedRepository,
        options: &BackupOptions,
        done: &Done,
    ) -> Self {
        // How long a look at some places takes says nothing of how long one at everything does.
        if done.summary.walked == Walked::Journal {
            return Self::default();
        }
        let paths = options.sources.iter().map(|source| Shown(&source.path).to_string());
        let what = paths.collect::<Vec<_>>().join(" ");
        let repository = access.config().repository.to_string();
        let (Done { summary, verdict, .. }, at_ns) = (done, SystemClock.now_ns());
        let run = Run {
            place: remembered::place(app),
            limited: args.connection.is_limited(),
            ..Run::of_backup((repository, what), at_ns, summary, verdict)
        };
        Self { slower_than_usual: remembered::add(app, run), ..Self::default() }
    }

    fn words(&self) -> Vec<String> {
        let estimate = self.estimate.as_ref();
        let estimate = estimate.map(|expected| format!("it would take {}", expected.words()));
        let slow = self.slower_than_usual.as_ref().map(|slow| slowness_in_words(slow, local_time));
        estimate.into_iter().chain(slow).collect()
    }
}

/// A repository that lost a snapshot gets a new one all the same, and the loss is told; so is a
/// receipt that cannot be read. A server that is away is the backup's to meet. Gives what there is,
/// so that it is not asked for again.
pub(super) fn tell_lost(app: &App, access: &UnlockedRepository) -> Option<Listed> {
    let is_passing = |error: &_| matches!(exit_of(error), Exit::Unreachable | Exit::Interrupted);
    let (listed, error) = match holdall_engine::snapshots_by_cache(access) {
        Ok(listed) => {
            listed.put_back.iter().for_each(|record| tell_put_back(app, record));
            let error = listing::tell_damage(app, access, &listed).err();
            let repaired = error.as_ref().and_then(|_| by_receipts(app, access));
            (Some(repaired.unwrap_or(listed)), error)
        }
        Err(error) => (None, Some(error.into())),
    };
    match error.filter(|error| !is_passing(error)) {
        Some(error) if is_forbidden(&error) => app.unseen(&error),
        Some(error) => app.damage(&error),
        None => {}
    }
    listed
}

/// Has the repository take what the receipts have of it, as the cache may have been lost, too; says what there
/// is then,
/// if it took something.
fn by_receipts(app: &App, access: &UnlockedRepository) -> Option<Listed> {
    let known = Receipts::in_state(&app.folders.state).all_stored(access.config().repository);
    let repairs = holdall_engine::put_back_records(access, known, None, false).ok()?.repairs;
    for repair in &repairs {
        app.output.note(repair.sentence(false));
    }
    (!repairs.is_empty()).then(|| holdall_engine::snapshots_by_cache(access).ok()).flatten()
}

/// Says that a record was put back. Where nothing in the repository told that it was gone, more may be gone.
fn tell_put_back(app: &App, record: &PutBack) {
    let file = &record.file;
    match record.untold {
        None => app.output.note(format_args!(
            "{file} was damaged or gone in the repository; this computer's copy was put back"
        )),
        Some(id) => {
            let message = format!("{id} was gone: {NOT_THERE}. {file} was put back");
            let hint = "newer records of other computers may be gone, too: run `holdall check --repair` there";
            app.damage(&Refusal::new(Exit::Damage, message).hint(hint).into());
        }
    }
}

/// The refusal of pipes through which nothing came, where there are no other sources: as where that is seen before.
fn nothing_came(options: &BackupOptions, error: EngineError) -> anyhow::Error {
    let is_of_pipes = options.pipes.len() == options.sources.len();
    match error {
        EngineError::NothingRead if is_of_pipes => Refusal::new(Exit::Usage, error.to_string())
            .hint("see how the program ended that should have written to the pipe")
            .into(),
        error => error.into(),
    }
}

/// That a command ended well and gave nothing, which is seldom what was wanted of it.
fn nothing_printed(words: &[OsString]) -> anyhow::Error {
    let program = words.first().map(|word| Shown(word.as_bytes()).to_string()).unwrap_or_default();
    let message =
        format!("the command {program} printed nothing: the file in the snapshot is empty");
    Refusal::new(Exit::Incomplete, message)
        .hint(
            "run the command by hand, and see why; the snapshots before have what it printed then",
        )
        .into()
}

/// A committed backup succeeds, even if its report cannot be written.
fn still_committed(app: &App, summary: &BackupSummary, told: Result<()>) -> Result<()> {
    told.or_else(|error| match &summary.snapshot_id {
        Some(id) => {
            app.output.warn_unreported(format_args!("the snapshot {id} was committed"), &error);
            Ok(())
        }
        None => Err(error),
    })
}

/// Whether a source is on a share, where names are slow to look at, and are not to be looked at twice.
fn is_far_away(sources: &[Source]) -> bool {
    use holdall_sys::disk::{file_system, is_share};
    use std::os::unix::ffi::OsStrExt;
    let path = |source: &Source| PathBuf::from(std::ffi::OsStr::from_bytes(&source.read_at));
    sources.iter().any(|source| file_system(&path(source)).is_ok_and(is_share))
}

/// A backup that was made, and what held it back.
pub(crate) struct Done {
    /// What it did.
    pub(crate) summary: BackupSummary,
    /// What held it back.
    pub(crate) verdict: Verdict,
    /// What it used.
    usage: Usage,
    /// How far it was over its time.
    curve: RunCurve,
    /// What could not be read, or needs a look, a sentence each.
    problems: Vec<String>,
    /// What was left out without a rule that says so, a sentence each.
    left_out: Vec<String>,
    /// Whether each path that was left out was named while it ran.
    is_listed: bool,
}

impl Done {
    /// What status wants to know of it.
    fn noted(&self) -> RunEnd {
        RunEnd {
            snapshot: self.summary.snapshot_id.map(|id| id.to_string()),
            items: self.summary.items,
            bytes: self.summary.bytes,
            problems: self.summary.problems,
            first_problems: self.problems.clone(),
            left_out: self.left_out.clone(),
            ..RunEnd::default()
        }
    }

    /// What a server is told of it.
    fn reported(&self, slowness: Option<&Slowness>) -> RunReport {
        report_of_backup(&self.summary, &self.verdict, slowness, &self.curve)
    }
}

/// Backs up, shows progress and problems, and remembers the receipt. What is there is asked for
/// unless it was `listed`; what it takes is forecast with the limit on sending that was set.
pub(crate) fn measured(
    app: &App,
    access: &UnlockedRepository,
    listed: Option<&Listed>,
    options: &BackupOptions,
    limit: Option<OwnLimit>,
) -> Result<Done> {
    let run = app.run();
    let before = UsageCounters::now(&run);
    let repository = access.config().repository.to_string();
    let known = FilledSources::in_state(&app.folders.state, &repository);
    let filled_before = known.paths().clone();
    let options = &BackupOptions { filled_before, ..options.clone() };
    let forecast = || remembered::forecast(Kind::Backup, app, access).held_by(limit);
    let count = |counting: &_| {
        // What keeps it from being counted is the backup's own to tell.
        if !is_far_away(&options.sources)
            && let Ok((items, bytes)) = holdall_engine::count_ahead(access, options, counting)
        {
            run.expect_if_unknown(items, bytes);
        }
    };
    let work = || match listed {
        Some(listed) => holdall_engine::backup_upon(access, listed, options, &run),
        None => holdall_engine::backup(access, options, &run),
    };
    let work = || patience::watching(app, &run, work);
    let is_listed = items::list(&app.output, &run, options.dry_run);
    // A bar would be drawn into the list.
    let progress = if is_listed && !app.output.json { &app.output.silent() } else { &app.output };
    let work = || counted_ahead(progress, &run, forecast, count, work);
    // Only a server is told of it.
    let (result, curve) = match access.repository().is_here() {
        true => (work(), RunCurve::new()),
        false => followed(&run, work),
    };
    let usage = UsageCounters::now(&run).since(&before);
    // What was committed is remembered before anything is said: saying it may fail.
    let remembered = match &result {
        Ok(summary) if summary.snapshot_id.is_some() => {
            Receipts::in_state(&app.folders.state).remember(access, &summary.stored_record)
        }
        _ => Ok(()),
    };
    let remembered = remembered.and_then(|()| match result.is_ok() && !options.dry_run {
        true => known.keep(&options.sources, run.take_filled()),
        false => Ok(()),
    });
    let (problems, told) = tell_problems(app, &run);
    let left_out = tell_changes(app, &run);
    let mut summary = result.map_err(|error| nothing_came(options, error))?;
    match summary.walked {
        Walked::Journal => app.output.detail("only what the change journal named was looked at"),
        Walked::Full(Some(why)) => {
            app.output.detail(format_args!("everything was looked at: {why}"))
        }
        Walked::Full(None) => {}
    }
    for rule in &summary.rules_unmatched {
        app.output.detail(format_args!("{rule}: this rule met nothing"));
    }
    if let Err(error) = remembered {
        let what = "the snapshot was committed, but its receipt could not be kept";
        let error = anyhow::Error::from(error).context(what);
        app.output.failure(&error, Exit::Incomplete.code(), None);
        summary.problems += 1;
    }
    still_committed(app, &summary, told.map_err(Into::into))?;
    let stages = summary.stages.clone();
    let verdict = judge(summary.items, summary.bytes, summary.seconds, stages, &usage);
    Ok(Done { summary, verdict, usage, curve, problems, left_out, is_listed })
}

/// Tells what could not be read, or needs a look; gives a sentence of each, and whether telling failed.
fn tell_problems(app: &App, run: &EngineRun) -> (Vec<String>, std::io::Result<()>) {
    let problems = run.take_problems();
    let told = problems.iter().try_for_each(|problem| app.output.problem(problem));
    let in_words = |problem: &Problem| format!("{}: {}", Shown(&problem.path), problem.reason);
    (problems.iter().map(in_words).collect(), told)
}

/// Tells what changed or vanished meanwhile, and what was left out without a rule that says so; gives a sentence of each
/// of these.
fn tell_changes(app: &App, run: &EngineRun) -> Vec<String> {
    for path in run.take_changed() {
        app.output.detail(format_args!("{}: changed while it was read", Shown(&path)));
    }
    for path in run.take_vanished() {
        app.output.detail(format_args!("{}: vanished before it was read", Shown(&path)));
    }
    let in_words = |left: Problem| format!("{} {}", Shown(&left.path), left.reason);
    let left_out: Vec<_> = run.take_left_out().into_iter().map(in_words).collect();
    left_out.iter().for_each(|left| app.output.note(format_args!("note: {left}")));
    left_out
}

fn report(app: &App, done: &Done, speed: &Speed) -> Result<()> {
    #[derive(Serialize)]
    struct WithSpeed<'a> {
        #[serde(flatten)]
        summary: JsonSummary<'a>,
        #[serde(flatten)]
        speed: &'a Speed,
        /// Where it went.
        place: Option<String>,
    }
    let (summary, place) = (JsonSummary::new(done), remembered::place_in_words(app));
    app.output.object("summary", &WithSpeed { summary, speed, place: place.clone() })?;
    let summary = &done.summary;
    // Of a run that is too short to say, nothing is said.
    for line in words(done).into_iter().chain(speed.words()) {
        app.output.say(line)?;
    }
    let id = match &summary.snapshot_id {
        Some(id) => format!("snapshot {}", id.to_string().get(..10).unwrap_or_default()),
        None => "dry run: nothing was stored".to_owned(),
    };
    if let Some(place) = place {
        let to = if summary.snapshot_id.is_some() { "to" } else { "would go to" };
        app.output.say(format_args!("{to} {place}"))?;
    }
    app.output.say(id)?;
    Ok(())
}

/// A backup in words, a line each, with what held it back if that is wanted.
pub(crate) fn words(done: &Done) -> Vec<String> {
    let summary = &done.summary;
    let unchanged = summary.files_unmodified + summary.dirs_unmodified;
    let mut lines = vec![
        format!(
            "{}, {} in {}: {}/s, {}/s",
            counted(summary.items, "item"),
            size(summary.bytes),
            duration(summary.seconds),
            counted(per_second(summary.items, summary.seconds) as u64, "item"),
            size(per_second(summary.bytes, summary.seconds) as u64),
        ),
        format!(
            "{} new, {} changed, {} unchanged; {} added, {} stored, {} sent",
            count(summary.files_new + summary.dirs_new),
            count(summary.files_changed + summary.dirs_changed),
            count(unchanged),
            size(summary.data_added),
            size(summary.data_stored),
            size(summary.bytes_sent),
        ),
    ];
    lines.extend(done.verdict.words());
    if summary.files_unsettled > 0 {
        let files = count(summary.files_unsettled);
        lines.push(format!("{files} changed while they were read: they are read again next time"));
    }
    let how = if done.is_listed { "" } else { " (-v names them)" };
    if summary.files_vanished > 0 {
        let files = count(summary.files_vanished);
        lines.push(format!("{files} vanished before they were read{how}"));
    }
    let left_out = summary.items_left_out - summary.files_too_large;
    if left_out > 0 {
        lines.push(format!("{} left out by rules{how}", counted(left_out, "item")));
    }
    if summary.files_too_large > 0 {
        let files = counted(summary.files_too_large, "file");
        let bytes = size(summary.bytes_too_large);
        lines.push(format!("{files}, {bytes}, left out as too large{how}"));
    }
    if summary.objects_sent_again > 0 {
        let objects = counted(summary.objects_sent_again, "object");
        lines.push(format!("the repository had lost {objects}, sent again now"));
    }
    if summary.problems > 0 {
        lines.push(format!("{} had a problem, named above", count(summary.problems)));
    }
    lines
}

/// A summary as programs see it.
#[derive(Serialize)]
pub(crate) struct JsonSummary<'a> {
    snapshot_id: Option<String>,
    files_new: u64,
    files_changed: u64,
    files_unmodified: u64,
    files_unsettled: u64,
    files_vanished: u64,
    objects_sent_again: u64,
    dirs_new: u64,
    dirs_changed: u64,
    dirs_unmodified: u64,
    total_files_processed: u64,
    total_items_processed: u64,
    total_bytes_processed: u64,
    data_added: u64,
    data_stored: u64,
    stored_ids: u64,
    stored_padding: u64,
    stored_nodes: u64,
    bytes_sent: u64,
    bytes_received: u64,
    total_duration: f64,
    items_per_second: f64,
    bytes_per_second: f64,
    items_left_out: u64,
    files_too_large: u64,
    bytes_too_large: u64,
    rules_unmatched: &'a [String],
    /// How it found out what changed: `journal` or `full`.
    walk: &'static str,
    /// Why it looked at everything although it was told where to look.
    #[serde(skip_serializing_if = "Option::is_none")]
    walk_reason: Option<String>,
    errors: u64,
    verdict: &'a Verdict,
}

impl<'a> JsonSummary<'a> {
    /// The summary and verdict of a backup.
    pub(crate) fn new(done: &'a Done) -> Self {
        let summary = &done.summary;
        Self {
            snapshot_id: summary.snapshot_id.map(|id| id.to_string()),
            files_new: summary.files_new,
            files_changed: summary.files_changed,
            files_unmodified: summary.files_unmodified,
            files_unsettled: summary.files_unsettled,
            files_vanished: summary.files_vanished,
            objects_sent_again: summary.objects_sent_again,
            dirs_new: summary.dirs_new,
            dirs_changed: summary.dirs_changed,
            dirs_unmodified: summary.dirs_unmodified,
            total_files_processed: summary.files_new
                + summary.files_changed
                + summary.files_unmodified,
            total_items_processed: summary.items,
            total_bytes_processed: summary.bytes,
            data_added: summary.data_added,
            data_stored: summary.data_stored,
            stored_ids: summary.stored_ids,
            stored_padding: summary.stored_padding,
            stored_nodes: summary.stored_nodes,
            bytes_sent: summary.bytes_sent,
            bytes_received: summary.bytes_received,
            total_duration: summary.seconds,
            items_per_second: per_second(summary.items, summary.seconds),
            bytes_per_second: per_second(summary.bytes, summary.seconds),
            items_left_out: summary.items_left_out,
            files_too_large: summary.files_too_large,
            bytes_too_large: summary.bytes_too_large,
            rules_unmatched: &summary.rules_unmatched,
            walk: summary.walked.word(),
            walk_reason: summary.walked.reason().map(|why| why.to_string()),
            errors: summary.problems,
            verdict: &done.verdict,
        }
    }
}
