//! The server's end of the socket by which it is administered.

use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::ServerError;
use crate::admin::{self, Command};
use crate::auth::actor::Actor;
use crate::state::ServerState;

/// Most bytes of a command.
const COMMAND_MAX_BYTES: u64 = 64 << 10;
/// How long the server waits for a command, and for its answer to be taken.
const PATIENCE: Duration = Duration::from_secs(10);

/// The server's end of the socket.
pub(crate) struct AdminSocket {
    listener: UnixListener,
}

impl AdminSocket {
    /// Listens in a data folder that this process holds.
    pub(crate) fn bind(folder: &Path) -> Result<Self, ServerError> {
        let failed = |source| ServerError::io("listening on", &admin::socket_of(folder), source);
        Ok(Self { listener: admin::bind(folder).map_err(failed)? })
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
    let answered = match serde_json::from_str::<Command>(&line) {
        Ok(command) => match state.carry_out(Actor::terminal(), command).await {
            Ok(answered) => answered.map_err(|error| error.to_string()),
            Err(_) => Err("the server is ending".into()),
        },
        Err(error) => Err(format!("not a command: {error}")),
    };
    let line = answered.or_else(admin::error_line).map_err(io::Error::other)?;
    timeout(PATIENCE, writing.write_all(&line)).await?
}
