//! Reaching a server: every address in turn, from the local addresses in turn, until one shows the
//! pinned key.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::socket::{Meter, Pace, Socket};
use super::{ClientOptions, ServerAddress};
use crate::tls::{self, TlsError};
use crate::{MachineIdentity, Traffic};

/// How long a silent peer is trusted before the kernel asks it for a sign of life, and between
/// such questions; three unanswered ones end the connection.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// How long sent bytes may stay unacknowledged.
const UNACKNOWLEDGED_MS: u32 = 60_000;

/// Why no connection was made.
#[derive(Debug)]
pub(super) enum DialError {
    /// No address answered, or none spoke TLS.
    Unreachable(String),
    /// An address answered with another key.
    WrongServer,
}

/// Makes connections to one server.
pub(super) struct Dialer {
    hosts: Vec<String>,
    /// The host that answered last.
    preferred: AtomicUsize,
    bind: Vec<IpAddr>,
    next_path: AtomicUsize,
    timeout: Duration,
    tls: TlsConnector,
    meter: Arc<Meter>,
    pace: Option<Arc<Pace>>,
}

impl Dialer {
    pub(super) fn new(
        address: &ServerAddress,
        identity: &MachineIdentity,
        options: &ClientOptions,
    ) -> Result<Self, TlsError> {
        let config = tls::client_config(identity.seed(), address.identity)?;
        Ok(Self::with_config(address.hosts.clone(), config, options))
    }

    pub(super) fn with_config(
        hosts: Vec<String>,
        config: rustls::ClientConfig,
        options: &ClientOptions,
    ) -> Self {
        Self {
            hosts,
            preferred: AtomicUsize::new(0),
            bind: options.bind.clone(),
            next_path: AtomicUsize::new(0),
            timeout: options.connect_timeout,
            tls: TlsConnector::from(Arc::new(config)),
            meter: Arc::default(),
            pace: options.upload_bytes_per_second.map(|rate| Arc::new(Pace::new(rate))),
        }
    }

    /// The host that answered last; the first one before any did.
    pub(super) fn host(&self) -> &str {
        self.hosts.get(self.preferred.load(Ordering::Relaxed)).map_or("", String::as_str)
    }

    pub(super) fn traffic(&self) -> Traffic {
        self.meter.traffic()
    }

    /// How many paths there are: one for each local address, and one where any will do.
    pub(super) fn paths(&self) -> usize {
        self.bind.len().max(1)
    }

    /// The next path in turn, counted from 0.
    pub(super) fn next_path(&self) -> usize {
        self.next_path.fetch_add(1, Ordering::Relaxed) % self.paths()
    }

    /// Connects to the first host that answers with the pinned key, over `path`, or over another one
    /// if that leads nowhere.
    pub(super) async fn dial(&self, path: usize) -> Result<TlsStream<Socket>, DialError> {
        let count = self.hosts.len();
        let tries = u32::try_from(count * self.paths()).unwrap_or(u32::MAX);
        let share = self.timeout / tries.max(1);
        let first = self.preferred.load(Ordering::Relaxed);
        let mut failure = DialError::Unreachable("no address is known".into());
        let hosts = self.hosts.iter().enumerate().cycle().skip(first).take(count);
        let paths = || (path..path + self.paths()).map(|path| self.local_address(path));
        for ((at, host), from) in hosts.flat_map(|host| paths().map(move |from| (host, from))) {
            let error = match timeout(share, self.dial_host(host, from)).await {
                Ok(Ok(stream)) => {
                    self.preferred.store(at, Ordering::Relaxed);
                    return Ok(stream);
                }
                Ok(Err(error)) => error,
                Err(_) => io::Error::new(io::ErrorKind::TimedOut, "no answer in time"),
            };
            if tls::is_wrong_server(&error) {
                failure = DialError::WrongServer;
            } else if matches!(failure, DialError::Unreachable(_)) {
                failure = DialError::Unreachable(format!("{host}: {error}"));
            }
        }
        Err(failure)
    }

    async fn dial_host(&self, host: &str, from: Option<IpAddr>) -> io::Result<TlsStream<Socket>> {
        let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in lookup_host(host).await? {
            match connect(address, from).await {
                Ok(tcp) => {
                    prepare(&tcp)?;
                    let socket = Socket::new(tcp, Arc::clone(&self.meter), self.pace.clone());
                    return self.tls.connect(tls::server_name(), socket).await;
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    fn local_address(&self, path: usize) -> Option<IpAddr> {
        self.bind.get(path % self.paths()).copied()
    }
}

async fn connect(to: SocketAddr, from: Option<IpAddr>) -> io::Result<TcpStream> {
    let socket = if to.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if let Some(from) = from {
        socket.bind(SocketAddr::new(from, 0))?;
    }
    socket.connect(to).await
}

/// Sends without delay, and lets the kernel find a peer that is gone.
fn prepare(tcp: &TcpStream) -> io::Result<()> {
    use rustix::net::sockopt;
    tcp.set_nodelay(true)?;
    sockopt::set_socket_keepalive(tcp, true)?;
    sockopt::set_tcp_keepidle(tcp, KEEPALIVE)?;
    sockopt::set_tcp_keepintvl(tcp, KEEPALIVE)?;
    sockopt::set_tcp_keepcnt(tcp, 3)?;
    #[cfg(target_os = "linux")]
    sockopt::set_tcp_user_timeout(tcp, UNACKNOWLEDGED_MS)?;
    Ok(())
}
