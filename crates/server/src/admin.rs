//! Administration beside a running server, by whoever may write its data folder.
//!
//! The server listens on `admin.sock` in its data folder, mode 0600: a line of JSON in, a line of
//! JSON out. Where no server runs, the command holds the folder itself for a moment. So an invite
//! can be made at any time and never waits for a restart.
//!
//! ```text
//! {"command":"invite","name":null,"for_machine":null,"repository":null,"addresses":[]}
//! {"ok":{"invite":"holdall1-...","expires_ns":1700000000000000000}}  or  {"error":"..."}
//! ```

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use holdall_protocol::Invite;
use holdall_repository::Clock;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use crate::ServerError;
use crate::accounts::{Accounts, Invitation, InviteRequest};
use crate::data_folder::DataFolder;
use crate::identity::ServerIdentity;
use crate::state::{ServerState, make_invite};

const SOCKET: &str = "admin.sock";
/// Most bytes of a line.
const LINE_MAX_BYTES: u64 = 64 << 10;
/// How long either end waits for the other.
const PATIENCE: Duration = Duration::from_secs(10);
/// Where an invite points to when no server ever ran.
const DEFAULT_LISTEN: &str = "0.0.0.0:7443";

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "lowercase")]
enum Command {
    Invite(InviteRequest),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Reply {
    Ok { invite: String, expires_ns: i64 },
    Error(String),
}

/// Makes an invite, whether the server of that data folder runs or not.
///
/// # Errors
/// [`ServerError::Refused`] for a request that breaks a rule; [`ServerError::Admin`] if the running
/// server does not answer; what is wrong with the folder.
pub fn invite(
    data_dir: &Path,
    request: &InviteRequest,
    clock: Arc<dyn Clock>,
) -> Result<Invitation, ServerError> {
    match connect(data_dir) {
        Ok(stream) => ask(&stream, request),
        Err(error)
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) =>
        {
            invite_without_server(data_dir, request, clock)
        }
        Err(error) => Err(ServerError::io("connecting to", &data_dir.join(SOCKET), error)),
    }
}

fn invite_without_server(
    data_dir: &Path,
    request: &InviteRequest,
    clock: Arc<dyn Clock>,
) -> Result<Invitation, ServerError> {
    let folder = DataFolder::take(data_dir)?;
    let identity = ServerIdentity::of(&folder)?;
    let accounts = Accounts::open(&folder.database(), clock)?;
    let listen = accounts.listen()?.unwrap_or_else(|| DEFAULT_LISTEN.into());
    let listen: SocketAddr = listen.parse().map_err(|_| ServerError::Damaged {
        path: folder.database(),
        reason: format!("{listen:?} is not an address"),
    })?;
    make_invite(&accounts, request, identity.public(), listen)
}

fn ask(stream: &UnixStream, request: &InviteRequest) -> Result<Invitation, ServerError> {
    let failed = |reason: String| ServerError::Admin { reason };
    let mut line = serde_json::to_vec(&Command::Invite(request.clone()))
        .map_err(|error| failed(error.to_string()))?;
    line.push(b'\n');
    let mut answer = String::new();
    let asked = stream
        .set_read_timeout(Some(PATIENCE))
        .and_then(|()| (&mut &*stream).write_all(&line))
        .and_then(|()| BufReader::new(stream.take(LINE_MAX_BYTES)).read_line(&mut answer));
    asked.map_err(|error| failed(error.to_string()))?;
    match serde_json::from_str(&answer).map_err(|error| failed(error.to_string()))? {
        Reply::Error(reason) => Err(ServerError::Refused { reason }),
        Reply::Ok { invite, expires_ns } => {
            let invite = Invite::from_text(&invite).map_err(|error| failed(error.to_string()))?;
            Ok(Invitation { invite, expires_ns })
        }
    }
}

/// The server's end of the socket.
pub(crate) struct AdminSocket {
    listener: UnixListener,
}

impl AdminSocket {
    /// Listens in a data folder that this process holds, so that a socket that is there is a dead
    /// server's. Nobody can connect before the mode is set.
    pub(crate) fn bind(folder: &Path) -> Result<Self, ServerError> {
        let path = folder.join(SOCKET);
        let bound = bind(folder, &path);
        let listener = bound.map_err(|source| ServerError::io("listening on", &path, source))?;
        Ok(Self { listener })
    }

    /// Answers one command at a time. Never ends by itself.
    pub(crate) async fn serve(self, state: &Arc<ServerState>) {
        let listener = match tokio::net::UnixListener::from_std(self.listener) {
            Ok(listener) => listener,
            Err(error) => {
                state.log(&format!("administration is not possible: {error}"));
                return std::future::pending().await;
            }
        };
        loop {
            match listener.accept().await {
                Ok((stream, _)) => match timeout(PATIENCE, answer(stream, state)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => state.log(&format!("administration: {error}")),
                    Err(_) => state.log("administration: no command came"),
                },
                Err(error) => {
                    state.log(&format!("administration: {error}"));
                    sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

async fn answer(stream: tokio::net::UnixStream, state: &Arc<ServerState>) -> io::Result<()> {
    let (reading, mut writing) = stream.into_split();
    let mut line = String::new();
    tokio::io::BufReader::new(reading.take(LINE_MAX_BYTES)).read_line(&mut line).await?;
    let reply = match serde_json::from_str(&line) {
        Ok(Command::Invite(request)) => {
            let inner = Arc::clone(state);
            let call = move || Ok(inner.invite(&request));
            match state.work.run(call).await {
                Ok((Ok(made), _)) => {
                    state.log("made an invite");
                    Reply::Ok { invite: made.invite.to_text(), expires_ns: made.expires_ns }
                }
                Ok((Err(error), _)) => Reply::Error(error.to_string()),
                Err(_) => Reply::Error("the server is ending".into()),
            }
        }
        Err(error) => Reply::Error(format!("not a command: {error}")),
    };
    let mut line = serde_json::to_vec(&reply)?;
    line.push(b'\n');
    writing.write_all(&line).await
}

fn bind(folder: &Path, path: &Path) -> io::Result<UnixListener> {
    use rustix::net;
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let (short, _folder) = short_path(folder)?;
    let socket = net::socket_with(
        net::AddressFamily::UNIX,
        net::SocketType::STREAM,
        net::SocketFlags::CLOEXEC | net::SocketFlags::NONBLOCK,
        None,
    )?;
    net::bind(&socket, &net::SocketAddrUnix::new(&short)?)?;
    let own = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(path, own)?;
    net::listen(&socket, 8)?;
    Ok(UnixListener::from(socket))
}

fn connect(folder: &Path) -> io::Result<UnixStream> {
    let (short, _folder) = short_path(folder)?;
    UnixStream::connect(short)
}

/// A name of the socket that fits into a socket's address (108 bytes) however long the folder's
/// path is, good for as long as the folder is held open.
fn short_path(folder: &Path) -> io::Result<(PathBuf, File)> {
    let open = File::open(folder)?;
    let short = format!("/proc/self/fd/{}/{SOCKET}", open.as_raw_fd());
    Ok((PathBuf::from(short), open))
}
