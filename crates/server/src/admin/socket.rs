//! The socket beside a running server, and the administrator's end of it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::commands::Line;
use crate::ServerError;

const SOCKET: &str = "admin.sock";
/// Most bytes of an answer: some ten thousand machines.
const ANSWER_MAX_BYTES: u64 = 8 << 20;

/// Where the socket of a data folder is.
pub(crate) fn path(folder: &Path) -> PathBuf {
    folder.join(SOCKET)
}

/// Asks a running server, and gives the line that it answers.
pub(super) fn ask(
    stream: &UnixStream,
    line: &[u8],
    patience: Option<Duration>,
) -> Result<Line, ServerError> {
    let mut answer = Line::default();
    let asked =
        stream.set_read_timeout(patience).and_then(|()| (&mut &*stream).write_all(line)).and_then(
            |()| BufReader::new(stream.take(ANSWER_MAX_BYTES)).read_until(b'\n', &mut answer),
        );
    asked.map_err(|error| ServerError::Admin { reason: error.to_string() })?;
    Ok(answer)
}

/// Listens in a data folder that this process holds, so that a socket that is there is a dead server's. Nobody can
/// connect before the mode is set.
pub(crate) fn bind(folder: &Path) -> io::Result<UnixListener> {
    use rustix::net;
    let path = path(folder);
    match std::fs::remove_file(&path) {
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
    std::fs::set_permissions(&path, own)?;
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
