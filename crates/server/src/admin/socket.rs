//! Both ends of the socket beside a running server.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use zeroize::Zeroizing;

use super::command::{Command, Reply};
use crate::ServerError;
use crate::state::ServerState;

const SOCKET: &str = "admin.sock";
/// Most bytes of a command.
const COMMAND_MAX_BYTES: u64 = 64 << 10;
/// Most bytes of an answer: some ten thousand machines.
const ANSWER_MAX_BYTES: u64 = 8 << 20;
/// How long the server waits for a command, and for its answer to be taken.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long an administrator waits: repositories that nobody used lately have to be opened.
const ANSWER_PATIENCE: Duration = Duration::from_secs(120);

/// A line that is answered.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Ok(Box<Reply>),
    Error(String),
}

/// Where the socket of a data folder is.
pub(super) fn path(folder: &Path) -> PathBuf {
    folder.join(SOCKET)
}

/// Asks a running server.
pub(super) fn ask(stream: &UnixStream, command: &Command) -> Result<Reply, ServerError> {
    let failed = |reason: String| ServerError::Admin { reason };
    let mut line = serde_json::to_vec(command).map_err(|error| failed(error.to_string()))?;
    line.push(b'\n');
    let mut answer = Zeroizing::new(String::new());
    let asked = stream
        .set_read_timeout((!command.is_long()).then_some(ANSWER_PATIENCE))
        .and_then(|()| (&mut &*stream).write_all(&line))
        .and_then(|()| BufReader::new(stream.take(ANSWER_MAX_BYTES)).read_line(&mut answer));
    asked.map_err(|error| failed(error.to_string()))?;
    match serde_json::from_str(&answer).map_err(|error| failed(error.to_string()))? {
        Answer::Ok(reply) => Ok(*reply),
        Answer::Error(reason) => Err(ServerError::Refused { reason }),
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
        let path = path(folder);
        let bound = bind(folder, &path);
        let listener = bound.map_err(|source| ServerError::io("listening on", &path, source))?;
        Ok(Self { listener })
    }

    /// Answers commands, each in a task of its own. Never ends by itself.
    pub(crate) async fn serve(self, state: &Arc<ServerState>) {
        let listener = match tokio::net::UnixListener::from_std(self.listener) {
            Ok(listener) => listener,
            Err(error) => {
                state.log(&format!("administration is not possible: {error}"));
                return std::future::pending().await;
            }
        };
        // They end with this.
        let mut answering = JoinSet::new();
        loop {
            while answering.try_join_next().is_some() {}
            match listener.accept().await {
                Ok((stream, _)) => drop(answering.spawn(told(stream, Arc::clone(state)))),
                Err(error) => {
                    state.log(&format!("administration: {error}"));
                    sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

/// Answers one command, and tells the log if it could not.
async fn told(stream: tokio::net::UnixStream, state: Arc<ServerState>) {
    if let Err(error) = answer(stream, &state).await {
        state.log(&format!("administration: {error}"));
    }
}

async fn answer(stream: tokio::net::UnixStream, state: &Arc<ServerState>) -> io::Result<()> {
    let (reading, mut writing) = stream.into_split();
    let mut line = String::new();
    let mut reading = tokio::io::BufReader::new(reading.take(COMMAND_MAX_BYTES));
    timeout(PATIENCE, reading.read_line(&mut line)).await??;
    let answer = match serde_json::from_str::<Command>(&line) {
        Ok(command) => {
            let inner = Arc::clone(state);
            let work = match command.is_quick() {
                true => &state.quick_work,
                false => &state.work,
            };
            match work.run(move || Ok(inner.administer(|all| all.carry_out(command)))).await {
                Ok((Ok(reply), _)) => Answer::Ok(Box::new(reply)),
                Ok((Err(error), _)) => Answer::Error(error.to_string()),
                Err(_) => Answer::Error("the server is ending".into()),
            }
        }
        Err(error) => Answer::Error(format!("not a command: {error}")),
    };
    // It may have an invite or a token.
    let mut line = Zeroizing::new(serde_json::to_vec(&answer)?);
    line.push(b'\n');
    timeout(PATIENCE, writing.write_all(&line)).await?
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

/// Reaches the server of that data folder, if it runs.
pub(super) fn connect(folder: &Path) -> io::Result<UnixStream> {
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
