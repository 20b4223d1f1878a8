//! The subcommands, one file each: arguments whose documentation is the help, then `run`.

mod admin;
mod agent;
pub(crate) mod backup;
mod browse;
mod check;
mod compact;
mod completions;
mod config;
mod copy;
mod diff;
mod discover;
mod disk;
mod dump;
mod erase;
mod find;
mod forget;
mod history;
mod import;
mod init;
pub(crate) mod invite;
mod key;
mod kit_trial;
mod lab;
mod ls;
mod man;
mod mount;
mod noted;
pub(crate) mod pair;
mod prune;
mod reporting;
pub(crate) mod restore;
mod serve;
mod set_backup;
mod snapshots;
mod stats;
mod status;
mod tag;
mod try_it;
mod version;
mod work_folder;

use anyhow::Result;
use clap::Subcommand;

use crate::app::{App, GlobalArgs};
use crate::exit::Exit;

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    Try(try_it::Args),
    Init(init::Args),
    Serve(serve::Args),
    Invite(invite::Args),
    Discover(discover::Args),
    Pair(pair::Args),
    Admin(admin::Args),
    Backup(Box<backup::Args>),
    Agent(agent::Args),
    Snapshots(snapshots::Args),
    Stats(stats::Args),
    Status(status::Args),
    Ls(ls::Args),
    Find(Box<find::Args>),
    Diff(diff::Args),
    History(history::Args),
    Restore(Box<restore::Args>),
    Dump(dump::Args),
    Browse(browse::Args),
    Mount(mount::Args),
    Tag(tag::Args),
    Key(key::Args),
    Check(check::Args),
    Copy(copy::Args),
    Import(Box<import::Args>),
    Forget(Box<forget::Args>),
    Prune(prune::Args),
    Compact(compact::Args),
    Erase(erase::Args),
    Disk(disk::Args),
    Lab(lab::Args),
    Config(config::Args),
    Completions(completions::Args),
    Man(man::Args),
    Version(version::Args),
}

impl Command {
    /// Whether it uses anything of the user who runs it: folders, settings, a password or a repository.
    pub(crate) fn needs_profile(&self) -> bool {
        match self {
            Self::Config(args) => args.needs_profile(),
            Self::Serve(_)
            | Self::Invite(_)
            | Self::Discover(_)
            | Self::Admin(_)
            | Self::Disk(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::Version(_) => false,
            _ => true,
        }
    }

    /// Whether it is worth more without settings that are damaged than not at all.
    pub(crate) fn goes_on_without_settings(&self) -> bool {
        match self {
            Self::Status(_) => true,
            Self::Agent(args) => args.goes_on_without_settings(),
            _ => false,
        }
    }

    /// Takes what is said of every command and means something else with this one.
    pub(crate) fn take_own(&mut self, global: &mut GlobalArgs) {
        if let Self::Import(args) = self {
            args.take_password(global);
        }
    }

    /// Does it.
    ///
    /// # Errors
    /// What kept it from being done.
    pub(crate) fn run(self, app: &App) -> Result<Exit> {
        match self {
            Self::Try(args) => try_it::run(&args, app),
            Self::Init(args) => init::run(&args, app),
            Self::Serve(args) => serve::run(args, app),
            Self::Invite(args) => invite::run(&args, app),
            Self::Discover(args) => discover::run(&args, app),
            Self::Pair(args) => pair::run(&args, app),
            Self::Admin(args) => admin::run(args, app),
            Self::Backup(args) => backup::run(&args, app),
            Self::Agent(args) => agent::run(&args, app),
            Self::Snapshots(args) => snapshots::run(&args, app),
            Self::Stats(args) => stats::run(&args, app),
            Self::Status(args) => status::run(&args, app),
            Self::Ls(args) => ls::run(&args, app),
            Self::Find(args) => find::run(&args, app),
            Self::Diff(args) => diff::run(&args, app),
            Self::History(args) => history::run(&args, app),
            Self::Restore(args) => restore::run(*args, app),
            Self::Erase(args) => erase::run(&args, app),
            Self::Disk(args) => disk::run(&args, app),
            Self::Dump(args) => dump::run(&args, app),
            Self::Browse(args) => browse::run(&args, app),
            Self::Mount(args) => mount::run(&args, app),
            Self::Tag(args) => tag::run(&args, app),
            Self::Key(args) => key::run(&args, app),
            Self::Check(args) => check::run(&args, app),
            Self::Copy(args) => copy::run(&args, app),
            Self::Import(args) => import::run(&args, app),
            Self::Forget(args) => forget::run(&args, app),
            Self::Prune(args) => prune::run(&args, app),
            Self::Compact(args) => compact::run(&args, app),
            Self::Lab(args) => lab::run(args, app),
            Self::Config(args) => config::run(&args, app),
            Self::Completions(args) => completions::run(&args),
            Self::Man(args) => man::run(&args, app),
            Self::Version(args) => version::run(&args, app),
        }
    }
}
