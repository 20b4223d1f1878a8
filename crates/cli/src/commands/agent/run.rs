//! `holdall agent run`: one backup of one set, now.

use std::path::PathBuf;

use anyhow::Result;
use holdall_diagnosis::runs::RunKind;
use holdall_state::{IsBackingUp, SetLock};

use super::asking::Asking;
use super::{hooks, trust};
use crate::app::App;
use crate::arguments::quantity;
use crate::commands::{backup, noted, set_backup};
use crate::config::{FILE, Set};
use crate::exit::{Exit, Refusal};
use crate::terminal::output::sentence;

/// Backs up a set of config.toml now, with its hooks
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall agent run home

It runs the hook `before`, then what `holdall backup` does with the options of the set, then `after` or `failed`, and \
`finally` in any case. If `before` fails, nothing is backed up. -r and --password-file come before what the set says. While \
the agent or another run backs up the same set, it ends with 11, and runs no hook.

Exit codes: 0 done, 1 failed (nothing committed), or the hook `before` did, 2 wrong usage, or no such set, 3 done, but some \
sources could not be read, or another hook failed, 10 no such repository, 11 set or repository in use, 12 wrong password, 13 not \
allowed, 14 server unreachable, 20 damage found, 130 interrupted")]
pub(crate) struct Args {
    /// The name of a set: `[sets.NAME]` in config.toml
    set: String,
    /// Sends at most so many bytes in a second (such as 500k, 20M), also if the set allows more
    #[arg(long, value_name = "RATE", value_parser = quantity::rate)]
    limit_upload: Option<u64>,
    /// Asks the agent, by standard input, for this file
    #[arg(long, value_name = "FILE", hide = true)]
    changes: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    let set = find(app, &args.set)?;
    let backup = set_backup::arguments(&args.set, &limited(set, args.limit_upload))?;
    let backup = backup.with_changes(args.changes.clone());
    let asking = args.changes.as_deref().map(Asking::by_standard_input).transpose()?;
    let app = &match &set.repository {
        Some(repository) => app.with_repository(repository),
        None => app.clone(),
    };
    if let Some(doubt) = trust::doubt(set, &app.folders.config) {
        app.output.urge(doubt);
    }
    // Declared before the hooks run, so that it drops after the last of them.
    let _lock = lock(app, &args.set, &backup.named())?;
    hooks::around(app, &args.set, &set.hooks, |before, unread| {
        let prepare = || {
            before()?;
            asking.iter().for_each(Asking::ask);
            Ok(())
        };
        backup::run_after(&backup, app, &prepare, unread)
    })
}

/// Takes the set for this run alone. Two runs of one set would take away what the hooks of the other have made.
///
/// # Errors
/// [`Refusal`] says which process backs it up, and is noted as a run that failed.
fn lock(app: &App, set: &str, sources: &[PathBuf]) -> Result<Option<IsBackingUp>> {
    let lock = SetLock::in_state(&app.folders.state, set);
    match lock.take() {
        Ok(Some(held)) => Ok(Some(held)),
        Ok(None) => {
            let who = lock.holder().unwrap_or_else(|| "another process".to_owned());
            let message = format!("the set {set} is being backed up already, by {who}");
            let refusal = Refusal::new(Exit::InUse, message).hint("try again when it is done");
            noted::noted(app, RunKind::Backup, sources, |_| Err(refusal.into())).map(|_| None)
        }
        // A backup is worth more than what keeps a second one out.
        Err(error) => {
            let why = sentence(&error.into());
            app.output.urge(format_args!("{why}; another run of the set {set} is not kept out"));
            Ok(None)
        }
    }
}

/// A set that sends no more than that in a second.
fn limited(set: &Set, most: Option<u64>) -> Set {
    let own = set.limit_upload.as_deref().map(quantity::rate);
    let is_lower = |most: &u64| !matches!(&own, Some(Ok(own)) if own <= most);
    let lower = most.filter(is_lower).map(|most| most.to_string());
    Set { limit_upload: lower.or_else(|| set.limit_upload.clone()), ..set.clone() }
}

fn find<'a>(app: &'a App, name: &str) -> Result<&'a Set, Refusal> {
    let sets = &app.settings().sets;
    sets.get(name).ok_or_else(|| {
        let file = app.folders.config.join(FILE);
        let known = sets.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let hint = match &known[..] {
            "" => format!("it has none: write [sets.{name}] into it; `holdall config generate` prints an example"),
            known => format!("it has {known}"),
        };
        Refusal::new(Exit::Usage, format!("{} has no set {name}", file.display())).hint(hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lower_one_of_two_limits_counts() {
        let limit = |own: Option<&str>, most| {
            let set = Set { limit_upload: own.map(str::to_owned), ..Set::default() };
            limited(&set, most).limit_upload
        };
        assert_eq!(limit(Some("2MB"), None).as_deref(), Some("2MB"));
        assert_eq!(limit(Some("2MB"), Some(500_000)).as_deref(), Some("500000"));
        assert_eq!(limit(Some("100k"), Some(500_000)).as_deref(), Some("100k"));
        assert_eq!(limit(None, Some(500_000)).as_deref(), Some("500000"));
    }
}
