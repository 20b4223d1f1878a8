//! Administration, by whoever may write the server's data folder, whether the server runs or not.
//!
//! A running server listens on `admin.sock` in its data folder, mode 0600: a line of JSON in, a line
//! of JSON out. Where no server runs, the command holds the folder itself for a moment. Either way
//! the same function carries it out, so nothing waits for a restart and nothing differs.
//!
//! ```text
//! {"command":"revoke","machine":"laptop"}
//! {"ok":{"reply":"machine","id":"...","name":"laptop",...}}  or  {"error":"..."}
//! ```
//!
//! `command` is what each has, `commands` has each once, `described` what a document says of them, `entries` what they answer, `administration` what they work on, `audit` what is noted of them, `channels` how people are told, `bandwidth` what passes in a second. `invites` lets machines in; `listing` does what
//! is about machines, quotas and lists; `keep` rules, deletions, prune and scrub; `alarm` says when rules stand still; `absent` tells who is away;
//! `identity_copy` is what to keep of a server elsewhere; `removal` renames and removes; `thin` offers a thinning; `lab` measures the disk, and `storage` tells what it is and when it will be full; `pages` is what the pages in a browser need, `people` who signs in there;
//! `machine_requests` is what machines ask for with a token. `socket` and `owner` are the administrator's way there.

mod absent;
mod administration;
mod alarm;
mod audit;
mod bandwidth;
mod carried;
mod channels;
mod command;
mod commands;
#[cfg(feature = "web")]
mod described;
mod entries;
mod identity_copy;
mod invites;
mod keep;
mod lab;
mod listing;
mod machine_requests;
mod owner;
mod pages;
mod people;
mod places;
mod removal;
mod socket;
mod storage;
mod thin;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use holdall_sys::Clock;

use crate::accounts::Accounts;
use crate::auth::actor::Actor;
use crate::auth::identity::ServerIdentity;
pub use crate::auth::scope::Scope;
use crate::data_folder::DataFolder;
use crate::jobs::Jobs;
use crate::stores::Stores;
use crate::{LogSink, ServerError};

pub use crate::accounts::{
    ApiToken, AuditEntry, BandwidthRule, CertificateStatus, Channel, ChannelEntry, Day, Deletion,
    Going, Hours, InviteEntry, Keeping, KeepingEntry, MachineEntry, Removal, RunEntry, Upkeep,
};
pub use crate::activity::SessionEntry;
pub use crate::jobs::{JobEntry, JobLine, JobProgress, JobSteps, Outcome};
pub use crate::lab::LabTest;
pub(crate) use administration::Administration;
#[cfg(feature = "web")]
pub(crate) use carried::Carried;
pub use command::{AdminCommand, Pace};
pub use commands::{
    AddBandwidth, AddPlace, BackupIdentity, Cancel, CancelJob, CompareLab, DrainPlace, EndSession,
    EndSessions, Forget, Invite, Judge, ListApiTokens, ListAudit, ListBandwidth, ListChannels,
    ListDeletions, ListInvites, ListJobs, ListKeeping, ListLab, ListMachines, ListPeople,
    ListPlaces, ListRepositories, ListRuns, ListSessions, ListSnapshots, MakeApiToken,
    MakeShortCode, MakeToken, MakeWebCode, MeasureLab, Only, Prune, Remove, RemoveBandwidth,
    RemoveChannel, RemovePerson, RemovePlace, Rename, Resume, Revoke, RevokeApiToken, Rights,
    Scrub, SetChannel, SetKeeping, SetQuota, SetUpkeep, ShowCertificate, ShowJob, ShowLab,
    ShowStorage, ShowUpkeep, TestChannel, Thin, WantedKeeping, WithdrawInvite,
};
pub(crate) use commands::{Command, Line, error_line, reply_of};
use commands::{command_line, reply_in};
#[cfg(feature = "web")]
pub(crate) use commands::{described, is_command, is_told_without_fields};
#[cfg(feature = "web")]
pub(crate) use described::Described;
pub use entries::{
    AlsoRepair, ApiTokens, Audit, BandwidthEntry, BandwidthRules, Channels, Deletions, Invites,
    IssuedApiToken, IssuedShortCode, IssuedToken, IssuedWebCode, JobList, JudgedEntry, Judgement,
    Keepings, LabComparison, LabEntry, LabReport, LabReports, Machines, People, PersonEntry,
    PlaceEntry, Places, Pruned, PrunedEntry, Quota, Renamed, Repositories, RepositoryEntry,
    Resumed, Runs, Scrubbed, ScrubbedEntry, Sessions, SnapshotEntry, Snapshots, Storage,
    StorageFact, Thinning,
};
pub use identity_copy::{IdentityCopy, restore_identity};
#[cfg(feature = "web")]
pub(crate) use people::{NAME_MOST, check_person_name};
pub(crate) use socket::{bind, path as socket_of};

/// How long an administrator waits: repositories that nobody used lately have to be opened.
const ANSWER_PATIENCE: Duration = Duration::from_secs(120);
/// Where an invite points to when no server ever ran.
const DEFAULT_LISTEN: &str = "[::]:7443";

/// Has a command carried out by the server of that data folder, or without it.
///
/// # Errors
/// [`ServerError::NoServer`]; [`ServerError::Refused`] for a command that breaks a rule, or names what is not there; [`ServerError::Admin`] if the
/// running server does not answer; what is wrong with the folder.
pub fn ask<C: AdminCommand>(
    data_dir: &Path,
    command: &C,
    clock: Arc<dyn Clock>,
) -> Result<C::Reply, ServerError> {
    let patience = (C::PACE != Pace::Long).then_some(ANSWER_PATIENCE);
    let answer = answer_to(data_dir, &command_line(command)?, patience, clock)?;
    reply_in::<C>(&answer)
}

/// Whether a server runs on that data folder. If one does, it answered.
///
/// # Errors
/// [`ServerError`] if it does not answer within the time that short commands have, or whoever asks may not.
pub fn is_served(data_dir: &Path) -> Result<bool, ServerError> {
    owner::refuse_others(data_dir)?;
    let Some(stream) = running(data_dir)? else { return Ok(false) };
    let answer = socket::ask(&stream, &command_line(&ListSessions {})?, Some(ANSWER_PATIENCE))?;
    reply_in::<ListSessions>(&answer).map(|_| true)
}

fn answer_to(
    data_dir: &Path,
    line: &[u8],
    patience: Option<Duration>,
    clock: Arc<dyn Clock>,
) -> Result<Line, ServerError> {
    owner::refuse_others(data_dir)?;
    if let Some(stream) = running(data_dir)? {
        return socket::ask(&stream, line, patience);
    }
    match owner::as_owner(data_dir, || without_server(data_dir, line, clock)) {
        // A server may have started meanwhile.
        Err(ServerError::DataFolderInUse { path }) => match running(data_dir)? {
            Some(stream) => socket::ask(&stream, line, patience),
            None => Err(ServerError::DataFolderInUse { path }),
        },
        done => done,
    }
}

/// The socket of the running server, if one runs.
fn running(data_dir: &Path) -> Result<Option<UnixStream>, ServerError> {
    match socket::connect(data_dir) {
        Ok(stream) => Ok(Some(stream)),
        Err(error)
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) =>
        {
            Ok(None)
        }
        Err(error) => Err(ServerError::io("connecting to", &socket::path(data_dir), error)),
    }
}

fn without_server(
    data_dir: &Path,
    line: &[u8],
    clock: Arc<dyn Clock>,
) -> Result<Line, ServerError> {
    let command: Command = serde_json::from_slice(line)
        .map_err(|error| ServerError::Admin { reason: error.to_string() })?;
    if !DataFolder::is_at(data_dir) {
        return Err(ServerError::NoServer { path: data_dir.to_owned() });
    }
    let folder = Arc::new(DataFolder::take(data_dir)?);
    let identity = Arc::new(match command {
        // An identity that is lost is made anew with the first invite, which shows it.
        Command::Invite(_) => ServerIdentity::of(&folder)?,
        _ => ServerIdentity::stored_in(&folder)?,
    });
    let accounts = Arc::new(Accounts::open(&folder.database(), clock)?);
    let listen = accounts.listen()?.unwrap_or_else(|| DEFAULT_LISTEN.into());
    let listen: SocketAddr = listen.parse().map_err(|_| ServerError::Damaged {
        path: folder.database().path().to_owned(),
        reason: format!("{listen:?} is not an address"),
    })?;
    let public = identity.public();
    let log: LogSink = Arc::new(|_| {});
    let stores = Stores::new(folder, identity, Arc::clone(&accounts), Arc::clone(&log));
    stores.finish_moves()?;
    let actor = Actor::terminal();
    let administration = Administration {
        accounts: &accounts,
        stores: &stores,
        identity: public,
        listen,
        log: &log,
        actor: &actor,
        activities: None,
        short_codes: None,
        #[cfg(feature = "web")]
        web_sessions: None,
        jobs: &Jobs::default(),
        job: None,
        should_stop: &AtomicBool::new(false),
    };
    command.carry_out(&administration)
}
