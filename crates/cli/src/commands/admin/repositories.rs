//! `holdall admin repositories`, and how a repository is shown.

use std::path::Path;

use anyhow::Result;
use holdall_server::admin::{ListRepositories, RepositoryEntry};
use serde::Serialize;

use super::{ask, going_in_words};
use crate::app::App;
use crate::exit::Exit;
use crate::terminal::output::{Shown, count, local_time, rfc3339, size};

/// Lists the repositories that this server keeps
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin repositories

A machine's repository is listed before it is made, so that it can be given a quota. One that cannot \
be opened is listed with the reason, and below a repository what was found damaged and why its \
automatic deletion is paused; -v says by when everything is read again.

Exit codes: 0 done, 1 failed, 2 wrong usage")]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, data: &Path, app: &App) -> Result<Exit> {
    let repositories = ask(data, &ListRepositories {})?.repositories;
    if repositories.is_empty() {
        app.output.say("no repositories; a machine makes one when it is paired")?;
        return Ok(Exit::Done);
    }
    app.output.say(format_args!(
        "{:<14} {:<12} {:>9} {:>9} {:>9}  newest",
        "name", "machine", "stored", "quota", "snapshots"
    ))?;
    repositories.iter().try_for_each(|repository| show(app, repository))?;
    Ok(Exit::Done)
}

/// Shows a repository, as a line or as an object.
pub(super) fn show(app: &App, repository: &RepositoryEntry) -> Result<()> {
    app.output.object("repository", &JsonRepository::new(repository))?;
    let owner = repository.machine_name.as_deref().unwrap_or("-");
    let newest = match (&repository.problem, repository.newest_ns) {
        (Some(problem), _) => Shown(problem.as_bytes()).to_string(),
        (None, Some(newest_ns)) => local_time(newest_ns),
        (None, None) if repository.id.is_none() => "not made yet".to_owned(),
        (None, None) => "-".to_owned(),
    };
    app.output.result(format_args!(
        "{:<14} {:<12} {:>9} {:>9} {:>9}  {newest}",
        repository.name,
        Shown(owner.as_bytes()).to_string(),
        size(repository.stored_bytes),
        repository.quota_bytes.map_or_else(|| "none".to_owned(), size),
        count(repository.snapshots),
    ))?;
    if let Some(going) = repository.going {
        app.output.result(format_args!("{:<16} {}", "", going_in_words(going)))?;
    }
    if let Some(alarm) = &repository.alarm {
        app.output.result(format_args!(
            "{:<16} automatic deletion is paused: {alarm}; to resume it: `holdall admin resume {}`",
            "", repository.name
        ))?;
    }
    for damage in &repository.damaged {
        app.output.result(format_args!("{:<16} damaged: {damage}", ""))?;
    }
    if let Some(read_by_ns) = repository.read_by_ns {
        app.output.detail(format_args!(
            "{}: everything is read again by {}",
            repository.name,
            local_time(read_by_ns)
        ));
    }
    Ok(())
}

/// A repository as programs see it.
#[derive(Serialize)]
struct JsonRepository<'a> {
    name: &'a str,
    id: Option<&'a str>,
    machine: Option<&'a str>,
    machine_name: Option<&'a str>,
    stored_bytes: u64,
    packs: u64,
    snapshots: u64,
    quota_bytes: Option<u64>,
    newest: Option<String>,
    read_by: Option<String>,
    read_since: Option<String>,
    damaged: &'a [String],
    alarm: Option<&'a str>,
    removed_after: Option<String>,
    problem: Option<&'a str>,
}

impl<'a> JsonRepository<'a> {
    fn new(repository: &'a RepositoryEntry) -> Self {
        Self {
            name: &repository.name,
            id: repository.id.as_deref(),
            machine: repository.machine.as_deref(),
            machine_name: repository.machine_name.as_deref(),
            stored_bytes: repository.stored_bytes,
            packs: repository.packs,
            snapshots: repository.snapshots,
            quota_bytes: repository.quota_bytes,
            newest: repository.newest_ns.map(rfc3339),
            read_by: repository.read_by_ns.map(rfc3339),
            read_since: repository.read_since_ns.map(rfc3339),
            damaged: &repository.damaged,
            alarm: repository.alarm.as_deref(),
            removed_after: repository.going.map(|going| rfc3339(going.due_ns)),
            problem: repository.problem.as_deref(),
        }
    }
}
