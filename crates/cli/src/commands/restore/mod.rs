//! `holdall restore`.

mod all_series;
mod deleting;

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::ValueEnum;
use holdall_diagnosis::speed_history::{Kind, Run, slowness_in_words};
use holdall_diagnosis::{
    Usage, UsageCounters, judge, name_own_limit, name_server_limit, name_share_of_restore,
};
use holdall_engine::{
    EngineError, InPlace, Overwrite, RestoreOptions, RestoreSummary, Run as EngineRun, Snapshot,
    UnlockedRepository,
};
use holdall_meter::cost::Slowness;
use holdall_meter::{Verdict, per_second};
use holdall_sys::{Clock, SystemClock};
use serde::Serialize;

use self::deleting::Deleting;
use crate::app::App;
use crate::arguments::filter::Filter;
use crate::arguments::quantity;
use crate::arguments::selection::Patterns;
use crate::arguments::sources::split_snapshot;
use crate::exit::{Exit, Refusal, hint_of};
use crate::lab::remembered;
use crate::opening::open::{self, Patience};
use crate::report::listing;
use crate::terminal::output::{
    JsonPath, Shown, count, counted, duration, local_date, local_time, size,
};
use crate::terminal::progress::watched;

/// Restores a snapshot, or a part of one, into a folder
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples: holdall restore latest /mnt/new                     everything, below /mnt/new
          holdall restore 1f3a:/home/ada/letters letters      what is in that folder, into another one
          holdall restore latest:letters/will.odt             where it was, beside what is there
          holdall restore --all-series --target /mnt/new      all that this machine backs up

Without a PATH, the absolute paths are restored below DIR; with one, what is at that path itself is \
put into DIR. Without DIR, what is at PATH is restored where it was. If something is there, it stays as it is, and what is \
restored is called `will.odt.restored-DATE`, folders too; --overwrite puts it in its place instead.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done, but some entries or metadata could not be \
restored, or the snapshot lacks one of its sources, 10 no such repository, 11 in use, 12 wrong password, 13 not allowed, 14 server unreachable, \
20 the same because the repository is damaged, or it lost a newer snapshot, 130 interrupted")]
pub(crate) struct Args {
    /// `latest` (of those that --machine, --path and --tag take), or the beginning of a snapshot's id; and
    /// what of it
    #[arg(value_name = "SNAP[:PATH]", required_unless_present = "all_series")]
    snapshot: Option<OsString>,
    /// The folder to restore into; made if it is not there [default: with a PATH, where it was]
    #[arg(value_name = "DIR", conflicts_with = "target")]
    dir: Option<PathBuf>,
    /// The same
    #[arg(long, visible_alias = "to", value_name = "DIR")]
    target: Option<PathBuf>,
    /// Restores the newest snapshot of each set of paths that the machine backs up, below DIR. Where two have the same
    /// path, the newer one counts
    #[arg(long)]
    all_series: bool,
    /// Restores only what matches this pattern
    #[arg(long, value_name = "PATTERN")]
    include: Vec<OsString>,
    /// Leaves out what matches this pattern
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<OsString>,
    /// What to do with what is there already [default: a folder that holds anything is refused]
    #[arg(long, value_enum, value_name = "WHEN")]
    overwrite: Option<OverwriteWhen>,
    /// Lists what is in the folder and not in the snapshot, and deletes it when everything is restored: also what rules
    /// left out of the backup (see with -n first). Folders and files that --exclude matches stay, with all that is in them, and so do
    /// what lies beside what was backed up, other file systems, repositories, servers' data, what holdall keeps, and what changed since it was listed. Not
    /// with --include or --all-series
    #[arg(long, requires = "overwrite", conflicts_with_all = ["all_series", "include"])]
    delete: bool,
    /// Takes owners by number, not by name
    #[arg(long)]
    numeric_ids: bool,
    /// Ends with 3 also where owners or attributes could not be set without root
    #[arg(long)]
    strict: bool,
    /// Only says what would be done
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Receives at most so many bytes in a second from a server (such as 500k, 20M) [default: as many as can be]
    #[arg(long, value_name = "RATE", value_parser = quantity::rate)]
    limit_download: Option<u64>,
    /// Reads everything back from the disk
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    filter: Filter,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum OverwriteWhen {
    /// Keep what is there, but for what a restore left half-made that was killed
    Never,
    /// Replace what is older than in the snapshot, or as old and of another size
    IfNewer,
    /// Replace it
    Always,
}

impl From<OverwriteWhen> for Overwrite {
    fn from(when: OverwriteWhen) -> Self {
        match when {
            OverwriteWhen::Never => Self::Never,
            OverwriteWhen::IfNewer => Self::IfNewer,
            OverwriteWhen::Always => Self::Always,
        }
    }
}

pub(crate) fn run(args: Args, app: &App) -> Result<Exit> {
    match &args.snapshot {
        Some(snapshot) if !args.all_series => one(&args, snapshot, app),
        _ => all_series::run(&args, app),
    }
}

impl Args {
    /// Opens the repository, which sends no faster than was said.
    fn access(&self, app: &App) -> Result<UnlockedRepository> {
        let download_bytes_per_second = self.limit_download;
        open::access_with(app, Patience { download_bytes_per_second, ..Patience::default() })
    }
}

/// Restores one snapshot, or a part of it.
fn one(args: &Args, snapshot: &OsStr, app: &App) -> Result<Exit> {
    let (name, path) = split_snapshot(snapshot)?;
    let named = args.dir.as_ref().or(args.target.as_ref());
    let is_whole = path.as_ref().is_none_or(|path| path.absolute == b"/");
    match named {
        Some(target) => check_is_folder(target)?,
        None if is_whole => return Err(no_target(snapshot).into()),
        None => {}
    }
    let patterns = Arc::new(Patterns::new(&args.include, &args.exclude)?);
    let filter = args.filter.resolve()?;
    let access = args.access(app)?;
    let shown = listing::shown(app, &access)?;
    let path = path.map(|path| shown.meant(&access, path));
    let snapshot = shown.wanted_with(&access, &name, path.as_deref(), &filter)?;
    if name == "latest" && path.is_none() {
        note_others(app, shown.snapshots.iter().filter(|one| filter.takes(one)), snapshot);
    }
    listing::tell_unknown(app, &access)?;
    let in_place = match (named, path.as_deref()) {
        (None, Some(path)) => Some(in_place(args, &access, snapshot, path)?),
        _ => None,
    };
    in_place.iter().flat_map(|place| &place.unfinished).for_each(|at| tell_unfinished(app, at));
    let of_place = || in_place.as_ref().map(|place| &place.target);
    let target = &named.or_else(of_place).cloned().unwrap_or_default();
    let options = options(args, &patterns, in_place.is_some());
    let list = || {
        let how = (&options, &*patterns);
        Deleting::list(app, &access, (snapshot, path.as_deref()), target, how)
    };
    let deleting = args.delete.then(list).transpose()?;
    let traffic = || access.repository().traffic().received_bytes;
    let (before, was_there) = (traffic(), target.symlink_metadata().is_ok());
    let mut done = measured(app, &access, snapshot, path.as_deref(), target, &options)?;
    if path.is_none() {
        tell_lacking(app, snapshot);
        tell_absent(app, &access, snapshot, &patterns, &mut done);
    }
    done.rules_unmatched = patterns.unmet_excludes();
    let (met, unmet) = (!done.is_nothing(), patterns.unmet_includes());
    done.summary.problems += unmet.len() as u64;
    if !met && !was_there && !args.dry_run {
        // If anything is in it, it stays.
        let _ = std::fs::remove_dir(target);
    }
    let is_anything_new = done.summary.files + done.summary.dirs > 0;
    if let Some(in_place) = in_place.filter(|_| !args.dry_run)
        && in_place.finish()?
        && is_anything_new
    {
        done.restored_to = Some(in_place.name);
    }
    if let Some(deleting) = deleting {
        deleting.carry_out(app, &options, &mut done)?;
    }
    explain(args, app, &mut done, traffic().saturating_sub(before));
    // How fast damage was found says nothing of the next restore.
    let tells = !args.dry_run && done.summary.damaged == 0;
    let slow = if tells { remembered(app, &access, target, &done) } else { None };
    let told = report(app, snapshot, &done, args.dry_run, slow.as_ref());
    app.output.told(told, DONE, args.dry_run)?;
    tell_unmet(app, &unmet, met, patterns.has_excludes());
    if !met && let Some(exit) = nothing_met(app, &unmet, &patterns)? {
        return Ok(exit);
    }
    if !args.dry_run {
        check_any(&done.summary, target)?;
    }
    Ok(exit_of(&done))
}

/// How a restore ends that did so much.
fn exit_of(done: &Done) -> Exit {
    match (&done.summary, done.not_deleted) {
        (RestoreSummary { damaged: 1.., .. }, _) => Exit::Damage,
        (RestoreSummary { problems: 1.., .. }, _) | (_, 1..) => Exit::Incomplete,
        _ => Exit::Done,
    }
}

/// Where what is at a path is restored that has no target: where it was.
fn in_place(
    args: &Args,
    access: &UnlockedRepository,
    snapshot: &Snapshot,
    path: &[u8],
) -> Result<InPlace> {
    let is_dir = holdall_engine::is_directory_at(access, snapshot, path)?;
    let date = local_date(SystemClock.now_ns());
    let overwrite = args.overwrite.map(Into::into);
    check_replaceable(path, is_dir, overwrite)?;
    Ok(InPlace::of(path, is_dir, overwrite, &date))
}

fn options(args: &Args, patterns: &Arc<Patterns>, in_place: bool) -> RestoreOptions {
    // In place there are other files beside a file.
    let beside = in_place.then_some(Overwrite::Never);
    let patterns = Arc::clone(patterns);
    RestoreOptions {
        overwrite: args.overwrite.map(Into::into).or(beside),
        numeric_ids: args.numeric_ids,
        strict: args.strict,
        dry_run: args.dry_run,
        verify: args.verify,
        in_place,
        select: match patterns.is_empty() {
            true => None,
            false => Some(Box::new(move |path, is_dir| patterns.select(path, is_dir))),
        },
    }
}

/// Notes that a folder holds what a killed restore left.
fn tell_unfinished(app: &App, folder: &Path) {
    app.output.note(format_args!(
        "{0} holds a restore that was not finished: delete it, or finish it with `--target {0} --overwrite always`",
        folder.display()
    ));
}

/// How a restore ends of which nothing was wanted, if that decides it.
fn nothing_met(app: &App, unmet: &[&[u8]], patterns: &Patterns) -> Result<Option<Exit>> {
    if !unmet.is_empty() {
        return Ok(Some(Exit::Failed));
    }
    if patterns.has_includes() {
        let message = "nothing was restored: what --include names is left out again";
        let hint = "an --include that begins with ! takes back what those before it name";
        return Err(Refusal::new(Exit::Failed, message).hint(hint).into());
    }
    if !patterns.is_empty() {
        app.output.note("note: nothing is left of it without what --exclude matches");
    }
    Ok(None)
}

/// The refusal of a whole snapshot without a target: in place it would be put among everything that is there.
fn no_target(snapshot: &OsStr) -> Refusal {
    let snapshot = snapshot.display();
    Refusal::new(Exit::Usage, "where to? A whole snapshot is restored into a folder that is named")
        .hint(format!(
            "`holdall restore {snapshot} DIR`; of what is at a path, SNAP:PATH is restored where it was"
        ))
}

/// Tells includes that met nothing, and how the command ends for that.
fn tell_unmet(app: &App, unmet: &[&[u8]], met_others: bool, has_excludes: bool) {
    let but = if has_excludes { " that --exclude does not leave out" } else { "" };
    let exit = if met_others { Exit::Incomplete } else { Exit::Failed };
    for include in unmet {
        let message =
            format!("--include {}: nothing in the snapshot matches it{but}", Shown(include));
        let refusal = Refusal::new(exit, message).hint(unmet_hint(include)).into();
        app.output.failure(
            &refusal,
            exit.code(),
            hint_of(&refusal, &remembered::known_names(app)).as_deref(),
        );
    }
}

/// What to do about an include that met nothing: in the name of a file, some letters have to be taken as they are.
fn unmet_hint(include: &[u8]) -> String {
    let is_special = |byte: &u8| b"[*?\\".contains(byte);
    if !include.iter().any(is_special) {
        return "`holdall ls` and `holdall find` show what there is".to_owned();
    }
    let as_it_is = |byte: &u8| if is_special(byte) { vec![b'\\', *byte] } else { vec![*byte] };
    let as_it_is: Vec<u8> = include.iter().flat_map(as_it_is).collect();
    format!(
        "it is a pattern; if it is the name of a file, write {}",
        String::from_utf8_lossy(&as_it_is)
    )
}

/// Refuses to put a folder where something else is, unless that is to be overwritten in any case.
fn check_replaceable(
    path: &[u8],
    is_dir: bool,
    overwrite: Option<Overwrite>,
) -> Result<(), Refusal> {
    let place = Path::new(OsStr::from_bytes(path));
    let is_other = is_dir && place.symlink_metadata().is_ok() && !place.is_dir();
    match overwrite {
        Some(Overwrite::Never | Overwrite::IfNewer) if is_other => {
            let message = format!("{} is no folder, and was one in the snapshot", Shown(path));
            Err(Refusal::new(Exit::Failed, message).hint(
                "`--overwrite always` replaces it; without --overwrite the folder is restored beside it",
            ))
        }
        _ => Ok(()),
    }
}

/// Refuses a target that is there and is no folder.
fn check_is_folder(target: &Path) -> Result<(), Refusal> {
    match target.metadata() {
        Ok(found) if !found.is_dir() => {
            let message = format!("{} is not a folder", target.display());
            Err(Refusal::new(Exit::Failed, message).hint("name another folder with --target"))
        }
        _ => Ok(()),
    }
}

/// A restore of which nothing was made, in a target that cannot be written, is none.
fn check_any(summary: &RestoreSummary, target: &Path) -> Result<()> {
    let made_nothing = summary.files + summary.dirs + summary.damaged == 0;
    if !made_nothing || summary.problems == 0 {
        return Ok(());
    }
    rustix::fs::access(target, rustix::fs::Access::WRITE_OK)
        .map_err(std::io::Error::from)
        .with_context(|| format!("{}: nothing could be restored there", target.display()))
}

/// Says how many items a snapshot lacks, or has as they were before.
fn tell_lacking(app: &App, snapshot: &Snapshot) {
    let unreadable = snapshot.secret.unreadable;
    if unreadable > 0 {
        app.output.note(format_args!(
            "note: {} could not be read when this snapshot was made, and is not in it, or as it was before",
            counted(unreadable, "item")
        ));
    }
}

/// Says which sources of a snapshot are not in it, since they could not be read. Of many sources, the first are looked for.
/// Where everything is wanted, each counts as not restored.
fn tell_absent(
    app: &App,
    access: &UnlockedRepository,
    snapshot: &Snapshot,
    patterns: &Patterns,
    done: &mut Done,
) {
    const MOST: usize = 100;
    for path in snapshot.secret.paths.iter().take(MOST) {
        // What else keeps it from being looked up kept it from being restored, and was told.
        let found = holdall_engine::is_directory_at(access, snapshot, path);
        if matches!(found, Err(EngineError::NoPath { .. })) {
            let shown = Shown(path);
            app.output.note(format_args!(
                "{shown} is not in this snapshot, as it could not be read: `holdall restore latest:{shown}` brings the newest \
                 one back that has it"
            ));
            done.summary.problems += u64::from(patterns.is_empty());
        }
    }
}

/// Says how many other things the machine backs up, as `taken` tells, none of which is in its latest
/// snapshot.
fn note_others<'a>(app: &App, taken: impl Iterator<Item = &'a Snapshot>, latest: &Snapshot) {
    let is_other = |one: &&Snapshot| {
        one.machine == latest.machine && one.secret.paths.iter().any(|path| !latest.covers(path))
    };
    let others: HashSet<_> = taken.filter(is_other).map(|one| &one.secret.paths).collect();
    if !others.is_empty() {
        app.output.note(format_args!(
            "note: the latest snapshot is of {}, and there are snapshots of {} other sets of paths: \
             name a path (latest:PATH), or an id (`holdall snapshots`), or restore all with --all-series",
            paths(latest),
            count(others.len() as u64),
        ));
    }
}

/// What a snapshot is of.
fn paths(snapshot: &Snapshot) -> String {
    let paths = snapshot.secret.paths.iter().map(|path| Shown(path).to_string());
    paths.collect::<Vec<_>>().join(" ")
}

/// Says what the verdict's stages cannot know: the limit that was set, or what was used of the wire to here, where it
/// was measured.
fn explain(args: &Args, app: &App, done: &mut Done, received_bytes: u64) {
    let received = per_second(received_bytes, done.summary.duration_seconds);
    let limit = ("--limit-download", args.limit_download);
    let is_set_limit = name_own_limit(&mut done.verdict, &done.usage, limit, received)
        || name_server_limit(&mut done.verdict, &done.usage);
    if !is_set_limit && let Some(ceilings) = remembered::ceilings(app) {
        name_share_of_restore(&mut done.verdict, &ceilings, received);
    }
}

/// Adds a restore to the history of runs, and looks whether it was slow.
fn remembered(
    app: &App,
    access: &UnlockedRepository,
    target: &Path,
    done: &Done,
) -> Option<Slowness> {
    let repository = access.config().repository.to_string();
    let what = std::path::absolute(target).unwrap_or_default().display().to_string();
    let now_ns = SystemClock.now_ns();
    let run = Run::of_restore((repository, what), now_ns, &done.summary, &done.verdict);
    remembered::add(app, run)
}

/// A restore that was made, and what held it back.
pub(crate) struct Done {
    /// What it did.
    pub(crate) summary: RestoreSummary,
    /// What held it back.
    pub(crate) verdict: Verdict,
    usage: Usage,
    /// Excludes that met nothing.
    pub(crate) rules_unmatched: Vec<String>,
    /// What it is called that was restored without a target.
    restored_to: Option<PathBuf>,
    /// How many things were deleted, where that was asked for.
    deleted: Option<u64>,
    /// How many were to be deleted, and stayed.
    not_deleted: u64,
}

impl Done {
    /// Whether nothing that is in the snapshot was wanted.
    fn is_nothing(&self) -> bool {
        let RestoreSummary { files, dirs, skipped, problems, .. } = self.summary;
        files + dirs + skipped + problems == 0
    }
}

/// What stays so, even if nobody listens any more.
const DONE: &str = "what could be restored was";

/// Restores, and shows progress and problems.
pub(crate) fn measured(
    app: &App,
    access: &UnlockedRepository,
    snapshot: &Snapshot,
    path: Option<&[u8]>,
    target: &Path,
    options: &RestoreOptions,
) -> Result<Done> {
    let run = app.run();
    let done = timed(app, access, snapshot, path, target, options, &run);
    let told = run.take_problems().iter().try_for_each(|problem| app.output.problem(problem));
    let done = done?;
    app.output.told(told.map_err(Into::into), DONE, options.dry_run)?;
    Ok(done)
}

/// Restores, and shows progress; problems stay with the run.
pub(crate) fn timed(
    app: &App,
    access: &UnlockedRepository,
    snapshot: &Snapshot,
    path: Option<&[u8]>,
    target: &Path,
    options: &RestoreOptions,
    run: &EngineRun,
) -> Result<Done> {
    let before = UsageCounters::now(run);
    let forecast = || remembered::forecast(Kind::Restore, app, access);
    let result = watched(&app.output, run, forecast, || {
        holdall_engine::restore(access, snapshot, path, target, options, run)
    });
    let usage = UsageCounters::now(run).since(&before);
    let summary = result?;
    let items = summary.files + summary.dirs;
    let stages = summary.stages.clone();
    let verdict = judge(items, summary.bytes, summary.duration_seconds, stages, &usage);
    let rules_unmatched = Vec::new();
    let (restored_to, deleted, not_deleted) = (None, None, 0);
    Ok(Done { summary, verdict, usage, rules_unmatched, restored_to, deleted, not_deleted })
}

fn report(
    app: &App,
    snapshot: &Snapshot,
    done: &Done,
    dry_run: bool,
    slow: Option<&Slowness>,
) -> Result<()> {
    #[derive(Serialize)]
    struct WithSpeed<'a> {
        snapshot_id: &'a str,
        #[serde(flatten)]
        summary: JsonSummary<'a>,
        /// What it is called, of what was restored without a target.
        #[serde(skip_serializing_if = "Option::is_none")]
        restored_to: Option<JsonPath>,
        /// With `--delete`.
        #[serde(skip_serializing_if = "Option::is_none")]
        deleted: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        slower_than_usual: Option<&'a Slowness>,
    }
    let summary = JsonSummary::new(done);
    let id = snapshot.id.to_string();
    let restored_to =
        done.restored_to.as_deref().map(|to| JsonPath::new(to.as_os_str().as_bytes()));
    let deleted = done.deleted;
    let object =
        WithSpeed { snapshot_id: &id, summary, restored_to, deleted, slower_than_usual: slow };
    app.output.object("summary", &object)?;
    let taken = local_time(snapshot.taken_ns());
    app.output.say(format_args!("snapshot {id:.10} of {taken}: {}", paths(snapshot)))?;
    for rule in &done.rules_unmatched {
        app.output.detail(format_args!("--exclude {rule}: this rule met nothing"));
    }
    // Of a run that is too short to say, nothing is said.
    for line in words(done).into_iter().chain(slow.map(|slow| slowness_in_words(slow, local_time)))
    {
        app.output.say(line)?;
    }
    if let Some(to) = &done.restored_to {
        app.output.say(format_args!("restored as {}", Shown(to.as_os_str().as_bytes())))?;
    }
    if dry_run {
        app.output.say("dry run: nothing was written")?;
    }
    Ok(())
}

/// A restore in words, a line each, with what held it back if that is wanted.
pub(crate) fn words(done: &Done) -> Vec<String> {
    let summary = &done.summary;
    let items = summary.files + summary.dirs;
    let seconds = summary.duration_seconds;
    let mut lines = vec![format!(
        "{}, {} in {}: {}/s, {}/s",
        counted(items, "item"),
        size(summary.bytes),
        duration(seconds),
        counted(per_second(items, seconds) as u64, "item"),
        size(per_second(summary.bytes, seconds) as u64),
    )];
    lines.extend(done.verdict.words());
    lines.extend(summary.notes.iter().map(|note| format!("note: {note}")));
    if summary.skipped > 0 {
        lines.push(format!("{} skipped", count(summary.skipped)));
    }
    if summary.problems > 0 {
        lines.push(format!("{} could not be restored, or not wholly", count(summary.problems)));
    }
    if summary.damaged > 0 {
        lines.push(
            "the repository is damaged: `holdall check --verify all` finds out what is affected"
                .to_owned(),
        );
    }
    lines
}

/// A summary as programs see it.
#[derive(Serialize)]
pub(crate) struct JsonSummary<'a> {
    files_restored: u64,
    dirs_restored: u64,
    bytes_restored: u64,
    skipped: u64,
    notes: &'a [String],
    rules_unmatched: &'a [String],
    total_duration: f64,
    items_per_second: f64,
    bytes_per_second: f64,
    errors: u64,
    verdict: &'a Verdict,
}

impl<'a> JsonSummary<'a> {
    /// The summary and verdict of a restore.
    pub(crate) fn new(done: &'a Done) -> Self {
        let summary = &done.summary;
        let seconds = summary.duration_seconds;
        Self {
            files_restored: summary.files,
            dirs_restored: summary.dirs,
            bytes_restored: summary.bytes,
            skipped: summary.skipped,
            notes: &summary.notes,
            rules_unmatched: &done.rules_unmatched,
            total_duration: seconds,
            items_per_second: per_second(summary.files + summary.dirs, seconds),
            bytes_per_second: per_second(summary.bytes, seconds),
            errors: summary.problems + done.not_deleted,
            verdict: &done.verdict,
        }
    }
}
