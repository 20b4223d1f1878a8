//! `holdall admin`: what a server's administrator sees and changes. One file for each verb.

mod api_token;
mod audit;
mod bandwidth;
mod certificate;
mod deletions;
mod health;
mod identity;
mod invites;
mod jobs;
mod lab;
mod machines;
mod notify;
mod people;
mod place;
mod prune;
mod quota;
mod remove;
mod rename;
mod repositories;
mod resume;
mod retention;
mod revoke;
mod rights;
mod runs;
mod scrub;
mod storage;
mod thin;
mod token;
mod upkeep;
mod web_code;
mod week;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use clap::Subcommand;
use holdall_server::admin::{self, AdminCommand, Going, Only, SnapshotEntry};
use holdall_sys::SystemClock;

use super::serve::data_folder;
use crate::app::App;
use crate::exit::Exit;
use crate::terminal::output::local_time;

/// Administers a server: its machines, their rights, its repositories and what they keep
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin machines
         holdall admin --data /srv/holdall revoke laptop

Whoever can write the server's data folder is its administrator; no password and no key of a \
repository is needed, and none would help to read one. It works while the server runs, and what \
is changed counts from the next request on, on open connections too.

Exit codes: 0 done, 1 failed, 2 wrong usage")]
pub(crate) struct Args {
    /// The server's data folder [default: as for `holdall serve`]
    #[arg(long, value_name = "DIR", env = "HOLDALL_DATA", global = true)]
    data: Option<PathBuf>,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Machines(machines::Args),
    Invites(invites::Args),
    Runs(runs::Args),
    Rights(rights::Args),
    Revoke(revoke::Args),
    Rename(rename::Args),
    Remove(remove::Args),
    Quota(quota::Args),
    Repositories(repositories::Args),
    Retention(retention::Args),
    Forget(deletions::ForgetArgs),
    Pending(deletions::PendingArgs),
    Cancel(deletions::CancelArgs),
    Prune(prune::Args),
    Resume(resume::Args),
    Scrub(scrub::Args),
    Thin(thin::Args),
    Token(token::Args),
    BackupIdentity(identity::BackupArgs),
    RestoreIdentity(identity::RestoreArgs),
    WebCode(web_code::Args),
    People(people::Args),
    ApiToken(api_token::Args),
    Audit(audit::Args),
    Health(health::Args),
    Jobs(jobs::Args),
    Lab(lab::Args),
    Storage(storage::Args),
    Place(place::Args),
    Bandwidth(bandwidth::Args),
    Upkeep(upkeep::Args),
    Certificate(certificate::Args),
    Notify(notify::Args),
}

pub(crate) fn run(args: Args, app: &App) -> Result<Exit> {
    let data = data_folder(args.data)?;
    match args.verb {
        Verb::Machines(args) => machines::run(&args, &data, app),
        Verb::Invites(args) => invites::run(&args, &data, app),
        Verb::Runs(args) => runs::run(&args, &data, app),
        Verb::Rights(args) => rights::run(&args, &data, app),
        Verb::Revoke(args) => revoke::run(&args, &data, app),
        Verb::Rename(args) => rename::run(&args, &data, app),
        Verb::Remove(args) => remove::run(&args, &data, app),
        Verb::Quota(args) => quota::run(&args, &data, app),
        Verb::Repositories(args) => repositories::run(&args, &data, app),
        Verb::Retention(args) => retention::run(&args, &data, app),
        Verb::Forget(args) => deletions::forget(&args, &data, app),
        Verb::Pending(args) => deletions::pending(&args, &data, app),
        Verb::Cancel(args) => deletions::cancel(&args, &data, app),
        Verb::Prune(args) => prune::run(&args, &data, app),
        Verb::Resume(args) => resume::run(&args, &data, app),
        Verb::Thin(args) => thin::run(&args, &data, app),
        Verb::Token(args) => token::run(&args, &data, app),
        Verb::BackupIdentity(args) => identity::backup(&args, &data, app),
        Verb::RestoreIdentity(args) => identity::restore(&args, &data, app),
        Verb::People(args) => people::run(&args, &data, app),
        Verb::ApiToken(args) => api_token::run(&args, &data, app),
        Verb::Audit(args) => audit::run(&args, &data, app),
        Verb::Health(args) => health::run(&args, &data, app),
        Verb::Jobs(args) => jobs::run(&args, &data, app),
        Verb::Lab(args) => lab::run(&args, &data, app),
        Verb::Storage(args) => storage::run(&args, &data, app),
        Verb::Place(args) => place::run(&args, &data, app),
        Verb::Bandwidth(args) => bandwidth::run(&args, &data, app),
        Verb::Upkeep(args) => upkeep::run(&args, &data, app),
        Verb::Certificate(args) => certificate::run(&args, &data, app),
        Verb::Notify(args) => notify::run(&args, &data, app),
        Verb::WebCode(args) => web_code::run(&args, &data, app),
        Verb::Scrub(args) => scrub::run(&args, &data, app),
    }
}

/// Has the server of that data folder carry out a command, or does it there, by this computer's clock.
fn ask<C: AdminCommand>(data: &Path, command: &C) -> Result<C::Reply> {
    Ok(admin::ask(data, command, Arc::new(SystemClock))?)
}

/// Which is meant by a name that a machine and a repository may have.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct Which {
    /// Means the machine, where a repository is called so too
    #[arg(long)]
    machine: bool,
    /// Means the repository alone
    #[arg(long)]
    repository: bool,
}

impl Which {
    fn only(&self) -> Option<Only> {
        let machine = self.machine.then_some(Only::Machine);
        machine.or(self.repository.then_some(Only::Repository))
    }
}

/// When something is removed, in words.
fn going_in_words(going: Going) -> String {
    format!(
        "will be removed after {}; `holdall admin cancel {}` takes that back",
        local_time(going.due_ns),
        going.number
    )
}

/// When a snapshot came; of a copy, the date of its original too.
fn date_of(snapshot: &SnapshotEntry) -> String {
    let received = local_time(snapshot.received_ns);
    match snapshot.taken_ns {
        Some(taken_ns) => format!("{}, copied {received}", local_time(taken_ns)),
        None => received,
    }
}
