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

mod alarm;
mod asked;
mod carry_out;
mod command;
mod keep;
mod owner;
mod socket;
mod thin;
mod tokens;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use holdall_protocol::{AdminToken, Invite};
use holdall_sys::Clock;

use crate::accounts::{Accounts, Invitation, InviteRequest};
use crate::data_folder::DataFolder;
use crate::identity::ServerIdentity;
use crate::rights::Right;
use crate::stores::Stores;
use crate::{LogSink, ServerError};

pub(crate) use carry_out::Administration;
pub use command::{
    AlsoMend, Deletion, Keeping, KeepingEntry, MachineEntry, PrunedEntry, Quota, RepositoryEntry,
    ScrubbedEntry, SnapshotEntry, Thinning,
};
use command::{Command, Reply};
pub(crate) use socket::AdminSocket;

/// Where an invite points to when no server ever ran.
const DEFAULT_LISTEN: &str = "0.0.0.0:7443";

/// Whether there is a data folder that a server used, or an invite was made in.
pub fn has_server(data_dir: &Path) -> bool {
    DataFolder::is_at(data_dir)
}

/// Makes an invite. Where there is no server, one is made, which does not run.
///
/// # Errors
/// [`ServerError::Refused`] for a request that breaks a rule; [`ServerError::Admin`] if the running
/// server does not answer; what is wrong with the folder.
pub fn invite(
    data_dir: &Path,
    request: &InviteRequest,
    clock: Arc<dyn Clock>,
) -> Result<Invitation, ServerError> {
    match ask(data_dir, Command::Invite(request.clone()), clock)? {
        Reply::Invite { invite, expires_ns } => {
            let invite = Invite::from_text(&invite)
                .map_err(|error| ServerError::Admin { reason: error.to_string() })?;
            Ok(Invitation { invite, expires_ns })
        }
        _ => Err(unexpected()),
    }
}

/// Lists all machines, by name.
///
/// # Errors
/// As [`invite`].
pub fn machines(data_dir: &Path, clock: Arc<dyn Clock>) -> Result<Vec<MachineEntry>, ServerError> {
    match ask(data_dir, Command::Machines, clock)? {
        Reply::Machines { machines } => Ok(machines),
        _ => Err(unexpected()),
    }
}

/// Tells what a machine may do, after changing it where `right` is given. `machine` is a name, an
/// id, or the beginning of an id that no other has.
///
/// # Errors
/// As [`invite`].
pub fn rights(
    data_dir: &Path,
    machine: &str,
    right: Option<Right>,
    clock: Arc<dyn Clock>,
) -> Result<MachineEntry, ServerError> {
    of_machine(ask(data_dir, Command::Rights { machine: machine.to_owned(), right }, clock)?)
}

/// Revokes all keys of a machine, named as for [`rights`], and the invites for it that nobody used.
/// Its repository stays.
///
/// # Errors
/// As [`invite`].
pub fn revoke(
    data_dir: &Path,
    machine: &str,
    clock: Arc<dyn Clock>,
) -> Result<MachineEntry, ServerError> {
    of_machine(ask(data_dir, Command::Revoke { machine: machine.to_owned() }, clock)?)
}

/// Tells how much a repository holds and may hold, after changing that where `quota` is given.
///
/// # Errors
/// As [`invite`].
pub fn quota(
    data_dir: &Path,
    repository: &str,
    quota: Option<Quota>,
    clock: Arc<dyn Clock>,
) -> Result<RepositoryEntry, ServerError> {
    let command = Command::Quota { repository: repository.to_owned(), quota };
    match ask(data_dir, command, clock)? {
        Reply::Repository(entry) => Ok(entry),
        _ => Err(unexpected()),
    }
}

/// Lists all repositories, by name, and those that a machine has and did not make yet.
///
/// # Errors
/// As [`invite`]; what is wrong with a single repository is in its entry.
pub fn repositories(
    data_dir: &Path,
    clock: Arc<dyn Clock>,
) -> Result<Vec<RepositoryEntry>, ServerError> {
    match ask(data_dir, Command::Repositories, clock)? {
        Reply::Repositories { repositories } => Ok(repositories),
        _ => Err(unexpected()),
    }
}

/// Tells what is kept of a repository, after changing that where something is wanted.
///
/// # Errors
/// As [`invite`].
pub fn keeping(
    data_dir: &Path,
    repository: &str,
    wanted: Option<Keeping>,
    clock: Arc<dyn Clock>,
) -> Result<KeepingEntry, ServerError> {
    let command = Command::Keeping { repository: repository.to_owned(), wanted };
    match ask(data_dir, command, clock)? {
        Reply::Keeping(entry) => Ok(entry),
        _ => Err(unexpected()),
    }
}

/// Asks for snapshots of a repository to be deleted, named by their ids or the beginnings of those.
/// That happens when the repository's delay is over, unless it is cancelled.
///
/// # Errors
/// As [`invite`].
pub fn forget(
    data_dir: &Path,
    repository: &str,
    snapshots: &[String],
    clock: Arc<dyn Clock>,
) -> Result<Vec<Deletion>, ServerError> {
    let (repository, snapshots) = (repository.to_owned(), snapshots.to_vec());
    of_deletions(ask(data_dir, Command::Forget { repository, snapshots }, clock)?)
}

/// Lists the deletions that wait.
///
/// # Errors
/// As [`invite`].
pub fn pending(data_dir: &Path, clock: Arc<dyn Clock>) -> Result<Vec<Deletion>, ServerError> {
    of_deletions(ask(data_dir, Command::Pending, clock)?)
}

/// Makes a token for a repository: with it, that repository's machine may ask for deletions. Says
/// until when, in nanoseconds since 1970 UTC.
///
/// # Errors
/// As [`invite`].
pub fn token(
    data_dir: &Path,
    repository: &str,
    clock: Arc<dyn Clock>,
) -> Result<(AdminToken, i64), ServerError> {
    match ask(data_dir, Command::Token { repository: repository.to_owned() }, clock)? {
        Reply::Token { token, expires_ns } => {
            Ok((AdminToken::from_text(&token).ok_or_else(unexpected)?, expires_ns))
        }
        _ => Err(unexpected()),
    }
}

/// Takes a deletion back, and tells which it was.
///
/// # Errors
/// As [`invite`].
pub fn cancel(
    data_dir: &Path,
    number: u64,
    clock: Arc<dyn Clock>,
) -> Result<Vec<Deletion>, ServerError> {
    of_deletions(ask(data_dir, Command::Cancel { number }, clock)?)
}

/// Applies rules and deletions that are due, and prunes: one repository, or all of them.
///
/// # Errors
/// As [`invite`]; what is wrong with a single repository is in its entry.
pub fn prune(
    data_dir: &Path,
    repository: Option<&str>,
    dry_run: bool,
    clock: Arc<dyn Clock>,
) -> Result<Vec<PrunedEntry>, ServerError> {
    let repository = repository.map(str::to_owned);
    match ask(data_dir, Command::Prune { repository, dry_run }, clock)? {
        Reply::Pruned { pruned } => Ok(pruned),
        _ => Err(unexpected()),
    }
}

/// Says which snapshots of a repository that is full could go, and asks for that if `confirmed`.
///
/// # Errors
/// As [`invite`].
pub fn thin(
    data_dir: &Path,
    repository: &str,
    confirmed: bool,
    clock: Arc<dyn Clock>,
) -> Result<Thinning, ServerError> {
    let repository = repository.to_owned();
    match ask(data_dir, Command::Thin { repository, confirmed }, clock)? {
        Reply::Thinning(thinning) => Ok(thinning),
        _ => Err(unexpected()),
    }
}

/// Has the rules of a repository go on after an alarm, and tells that.
///
/// # Errors
/// As [`invite`].
pub fn resume(
    data_dir: &Path,
    repository: &str,
    clock: Arc<dyn Clock>,
) -> Result<Option<String>, ServerError> {
    let repository = repository.to_owned();
    match ask(data_dir, Command::Resume { repository }, clock)? {
        Reply::Resumed { alarm } => Ok(alarm),
        _ => Err(unexpected()),
    }
}

/// Reads everything again and checks hashes and references: one repository, or all of them. Mends
/// what is to be mended.
///
/// # Errors
/// As [`invite`]; what is wrong with a single repository is in its entry.
pub fn scrub(
    data_dir: &Path,
    repository: Option<&str>,
    also: AlsoMend,
    clock: Arc<dyn Clock>,
) -> Result<Vec<ScrubbedEntry>, ServerError> {
    let repository = repository.map(str::to_owned);
    match ask(data_dir, Command::Scrub { repository, also }, clock)? {
        Reply::Scrubbed { scrubbed } => Ok(scrubbed),
        _ => Err(unexpected()),
    }
}

fn of_deletions(reply: Reply) -> Result<Vec<Deletion>, ServerError> {
    match reply {
        Reply::Deletions { deletions } => Ok(deletions),
        _ => Err(unexpected()),
    }
}

fn of_machine(reply: Reply) -> Result<MachineEntry, ServerError> {
    match reply {
        Reply::Machine(entry) => Ok(entry),
        _ => Err(unexpected()),
    }
}

fn unexpected() -> ServerError {
    ServerError::Admin { reason: "it answered something else; is it of another version?".into() }
}

/// Has a command carried out by the server of that data folder, or without it.
fn ask(data_dir: &Path, command: Command, clock: Arc<dyn Clock>) -> Result<Reply, ServerError> {
    owner::refuse_others(data_dir)?;
    if let Some(stream) = running(data_dir)? {
        return socket::ask(&stream, &command);
    }
    match owner::as_owner(data_dir, || without_server(data_dir, &command, clock)) {
        // A server may have started meanwhile.
        Err(ServerError::DataFolderInUse { path }) => match running(data_dir)? {
            Some(stream) => socket::ask(&stream, &command),
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
    command: &Command,
    clock: Arc<dyn Clock>,
) -> Result<Reply, ServerError> {
    // An invite may be the first that is heard of a server; the rest is about what is there.
    let is_first = matches!(command, Command::Invite(_));
    if !is_first && !DataFolder::is_at(data_dir) {
        let reason = format!("there is no server's data folder at {}", data_dir.display());
        return Err(ServerError::Refused { reason });
    }
    let folder = Arc::new(DataFolder::take(data_dir)?);
    let identity = Arc::new(match is_first {
        true => ServerIdentity::of(&folder)?,
        false => ServerIdentity::stored_in(&folder)?,
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
    let administration = Administration {
        accounts: &accounts,
        stores: &stores,
        identity: public,
        listen,
        log: &log,
        should_stop: &AtomicBool::new(false),
    };
    administration.carry_out(command.clone())
}
