//! `holdall restore --all-series`: everything of a machine, which may back up several sets of paths.
//!
//! The newest snapshot of each set is restored, the newest of all first. What it is of is left out of the older ones, so
//! that each path comes from one snapshot, and nothing that was deleted since comes back from an older one.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use holdall_engine::{NewestOfSeries, Overwrite, RestoreOptions, Snapshot, newest_of_each_series};

use super::{
    Args, DONE, check_any, check_is_folder, measured, nothing_met, options, paths, report,
    tell_unmet,
};
use crate::app::App;
use crate::arguments::selection::Patterns;
use crate::exit::{Exit, Refusal};
use crate::opening::open;
use crate::report::listing;
use crate::terminal::output::{Shown, counted, local_time};

pub(super) fn run(args: &Args, app: &App) -> Result<Exit> {
    let target = &target(args)?;
    check_is_folder(target)?;
    let patterns = Arc::new(Patterns::new(&args.include, &args.exclude)?);
    let filter = args.filter.resolve()?;
    let access = open::access(app)?;
    let shown = listing::shown(app, &access)?;
    let newest = shown.wanted(&access, "latest", None, &filter)?;
    listing::tell_unknown(app, &access)?;
    let is_own = |one: &&Snapshot| {
        one.machine == newest.machine && one.is_copy() == newest.is_copy() && filter.takes(one)
    };
    let parts = newest_of_each_series(shown.snapshots.iter().filter(is_own));
    let was_there = target.symlink_metadata().is_ok();
    let mut problems = (0, 0);
    let mut met = false;
    let mut restored = 0;
    for part in &parts {
        tell_newer(app, part);
        if part.is_superseded() {
            continue;
        }
        let first = options(args, &patterns, false);
        // What lies there now was restored by this command, or may be overwritten.
        let later = (restored > 0).then_some(Overwrite::Always);
        let overwrite = first.overwrite.or(later);
        let wanted = Arc::clone(&patterns);
        let select = Some(part.selection(move |path, is_dir| wanted.select(path, is_dir)));
        let options = RestoreOptions { overwrite, select, ..first };
        let done = measured(app, &access, part.snapshot, None, target, &options)?;
        met |= !done.is_nothing();
        problems.0 += done.summary.problems;
        problems.1 += done.summary.damaged;
        let told = report(app, part.snapshot, &done, args.dry_run, None);
        app.output.told(told, DONE, args.dry_run)?;
        if !args.dry_run {
            check_any(&done.summary, target)?;
        }
        restored += 1;
    }
    if !met && !was_there && !args.dry_run {
        // If anything is in it, it stays.
        let _ = std::fs::remove_dir(target);
    }
    let word = if args.dry_run { "would be restored" } else { "restored" };
    let all = counted(restored, "snapshot");
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

/// Says what of a snapshot is left out, since a newer one has it.
fn tell_newer(app: &App, part: &NewestOfSeries<'_>) {
    let of =
        |one: &Snapshot| format!("{:.10} of {}", one.id.to_string(), local_time(one.taken_ns()));
    for (path, newer) in &part.newer {
        let what = match part.is_superseded() {
            true => paths(part.snapshot),
            false => Shown(path).to_string(),
        };
        app.output.note(format_args!(
            "note: {what} is left out of snapshot {}: {}, which is newer, has {}",
            of(part.snapshot),
            of(newer),
            Shown(path),
        ));
    }
}
