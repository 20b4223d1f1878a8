//! `holdall restore --all-series`: everything of a machine, which may back up several sets of paths.
//!
//! The newest snapshot of each set is restored. Where two are of one path, the newer one counts, and the older one adds what
//! the newer one lacks: that may have been deleted since, but also left out by a rule, and nothing is to be lost.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use holdall_engine::{Overwrite, RestoreOptions, Snapshot, newest_of_each_series};

use super::{
    Args, DONE, check_any, check_is_folder, explain, measured, nothing_met, options, report,
    tell_absent, tell_unmet,
};
use crate::app::App;
use crate::arguments::selection::Patterns;
use crate::exit::{Exit, Refusal};
use crate::report::listing;
use crate::terminal::output::{Shown, counted, local_time};

pub(super) fn run(args: &Args, app: &App) -> Result<Exit> {
    let target = &target(args)?;
    check_is_folder(target)?;
    let patterns = Arc::new(Patterns::new(&args.include, &args.exclude)?);
    let filter = args.filter.resolve()?;
    let access = args.access(app)?;
    let shown = listing::shown(app, &access)?;
    let newest = shown.wanted(&access, "latest", None, &filter)?;
    listing::tell_unknown(app, &access)?;
    let is_own = |one: &&Snapshot| {
        one.machine == newest.machine && one.is_copy() == newest.is_copy() && filter.takes(one)
    };
    let mut parts = newest_of_each_series(shown.snapshots.iter().filter(is_own));
    tell_overlaps(app, &parts);
    if options(args, &patterns, false).overwrite == Some(Overwrite::Always) {
        // The newest is the last to overwrite.
        parts.reverse();
    }
    let was_there = target.symlink_metadata().is_ok();
    let mut problems = (0, 0);
    let mut met = false;
    for (at, snapshot) in parts.iter().enumerate() {
        let first = options(args, &patterns, false);
        // What lies there now was restored by this command, from a newer snapshot.
        let later = (at > 0).then_some(Overwrite::Never);
        let options = RestoreOptions { overwrite: first.overwrite.or(later), ..first };
        let received = || access.repository().traffic().received_bytes;
        let before = received();
        let mut done = measured(app, &access, snapshot, None, target, &options)?;
        explain(args, app, &mut done, received().saturating_sub(before));
        tell_absent(app, &access, snapshot, &patterns, &mut done);
        met |= !done.is_nothing();
        problems.0 += done.summary.problems;
        problems.1 += done.summary.damaged;
        let told = report(app, snapshot, &done, args.dry_run, None);
        app.output.told(told, DONE, args.dry_run)?;
        if !args.dry_run {
            check_any(&done.summary, target)?;
        }
    }
    if !met && !was_there && !args.dry_run {
        // If anything is in it, it stays.
        let _ = std::fs::remove_dir(target);
    }
    let word = if args.dry_run { "would be restored" } else { "restored" };
    let all = counted(parts.len() as u64, "snapshot");
    app.output.say(format_args!("{all} {word} below {}", target.display()))?;
    let unmet = patterns.unmet_includes();
    tell_unmet(app, &unmet, met, patterns.has_excludes());
    if !met && let Some(exit) = nothing_met(app, &unmet, &patterns)? {
        return Ok(exit);
    }
    Ok(match problems {
        (_, 1..) => Exit::Damage,
        (1.., _) => Exit::Incomplete,
        _ if !unmet.is_empty() => Exit::Incomplete,
        _ => Exit::Done,
    })
}

/// Where to: the only thing that is named beside `latest`.
fn target(args: &Args) -> Result<PathBuf, Refusal> {
    let snapshot = args.snapshot.as_deref().filter(|snapshot| *snapshot != OsStr::new("latest"));
    match (snapshot, args.dir.as_ref().or(args.target.as_ref())) {
        (None, Some(target)) => Ok(target.clone()),
        (Some(only), None) => Ok(Path::new(only).to_owned()),
        (Some(snapshot), Some(_)) => {
            let message =
                format!("--all-series takes the newest snapshots, not {}", snapshot.display());
            Err(Refusal::new(Exit::Usage, message)
                .hint("leave it out; --machine, --path and --tag say which snapshots are meant"))
        }
        (None, None) => Err(Refusal::new(Exit::Usage, "where to? --all-series needs a folder")
            .hint("`holdall restore --all-series --target DIR`")),
    }
}

/// Notes the paths that two snapshots have in common. What only the older one has is restored, too: it may have been deleted
/// since, or a rule may have left it out of the newer one.
fn tell_overlaps(app: &App, newest_first: &[&Snapshot]) {
    let of =
        |one: &Snapshot| format!("{:.10} of {}", one.id.to_string(), local_time(one.taken_ns()));
    for (at, older) in newest_first.iter().enumerate() {
        for newer in newest_first.iter().take(at) {
            let shared = newer.secret.paths.iter().find(|path| older.holds(path));
            let Some(path) = shared else { continue };
            app.output.note(format_args!(
                "{} is in two snapshots: that of {} counts; what only {} has is restored, too, be it that it was deleted since",
                Shown(path),
                of(newer),
                of(older),
            ));
        }
    }
}
