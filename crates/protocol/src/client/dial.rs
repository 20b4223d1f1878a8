//! Reaching a server: from the local addresses in turn, until one of its addresses shows the pinned key.
//!
//! A name often has an address that answers nobody, an IPv6 one behind a router that drops what comes in
//! say. So addresses are tried side by side, each begun a little after the one before (as in RFC 8305).

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use holdall_sys::limits::Lack;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::pace::{Pace, RateLimit, WireMeter};
use super::socket::{Meter, Socket};
use super::{ClientOptions, ServerAddress};
use crate::tls::{self, TlsError};
use crate::{MachineIdentity, Traffic};

/// How long a silent peer is trusted before the kernel asks it for a sign of life, and between
/// such questions; three unanswered ones end the connection.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// How long sent bytes may stay unacknowledged.
const UNACKNOWLEDGED_MS: u32 = 60_000;

/// How long an address is waited for before the next one is tried beside it.
const HEAD_START: Duration = Duration::from_millis(500);

/// Why no connection was made.
#[derive(Debug)]
pub(super) enum DialError {
    /// No address answered, or none spoke TLS.
    Unreachable(String),
    /// This process has no more of what a connection takes.
    Lacking(io::Error),
    /// An address answered with another key.
    WrongServer,
}

impl DialError {
    /// What an error of this computer's system says.
    pub(super) fn of(error: io::Error) -> Self {
        match Lack::of(&error) {
            Some(_) => Self::Lacking(error),
            None => Self::Unreachable(error.to_string()),
        }
    }
}

/// Makes connections to one server.
pub(super) struct Dialer {
    hosts: Vec<String>,
    /// The host that answered last.
    preferred: AtomicUsize,
    bind: Vec<IpAddr>,
    next_path: AtomicUsize,
    timeout: Duration,
    line: Line,
}

impl Dialer {
    /// What the connections of this client count in.
    pub(super) fn wire_meter(&self) -> WireMeter {
        self.line.wire.clone()
    }

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
            line: Line {
                tls: TlsConnector::from(Arc::new(config)),
                meter: Arc::default(),
                wire: options.meter.clone(),
                paces: [
                    options.upload.map(|limit| Pace::new(limit, &options.meter)),
                    options
                        .download_bytes_per_second
                        .map(|rate| Pace::new(RateLimit::BytesPerSecond(rate), &options.meter)),
                ],
                may_wait: options.may_wait,
                met_another: Arc::default(),
            },
        }
    }

    /// The host that answered last; the first one before any did.
    pub(super) fn host(&self) -> &str {
        self.hosts.get(self.preferred.load(Ordering::Relaxed)).map_or("", String::as_str)
    }

    pub(super) fn traffic(&self) -> Traffic {
        self.line.meter.traffic()
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
        let share = self.timeout / u32::try_from(self.paths()).unwrap_or(u32::MAX);
        // Whatever becomes of the other addresses, it counts that one has another key.
        let line = Line { met_another: Arc::default(), ..self.line.clone() };
        let mut failure = DialError::Unreachable("no address is known".to_owned());
        for path in path..path + self.paths() {
            let from = self.local_address(path);
            failure = match timeout(share, race(self.attempts(&line, from))).await {
                Ok(Ok((at, stream))) => {
                    self.preferred.store(at, Ordering::Relaxed);
                    return Ok(stream);
                }
                Ok(Err(error)) => DialError::of(error),
                Err(_) => {
                    DialError::Unreachable(format!("{}: no answer in time", self.hosts.join(", ")))
                }
            };
        }
        match line.met_another.load(Ordering::Relaxed) {
            true => Err(DialError::WrongServer),
            false => Err(failure),
        }
    }

    /// One attempt for each host, that which answered last first, with its number.
    fn attempts(
        &self,
        line: &Line,
        from: Option<IpAddr>,
    ) -> impl Iterator<
        Item = impl Future<Output = io::Result<(usize, TlsStream<Socket>)>> + Send + 'static,
    > {
        let first = self.preferred.load(Ordering::Relaxed);
        let hosts = self.hosts.iter().enumerate().cycle().skip(first).take(self.hosts.len());
        hosts.map(move |(at, host)| {
            let (line, host) = (line.clone(), host.clone());
            async move {
                let dialed = line.dial_host(&host, from).await;
                let told = |error: io::Error| match Lack::of(&error) {
                    Some(_) => error,
                    None => io::Error::other(format!("{host}: {error}")),
                };
                dialed.map(|stream| (at, stream)).map_err(told)
            }
        })
    }

    fn local_address(&self, path: usize) -> Option<IpAddr> {
        self.bind.get(path % self.paths()).copied()
    }
}

/// What every connection is made with.
#[derive(Clone)]
struct Line {
    tls: TlsConnector,
    meter: Arc<Meter>,
    wire: WireMeter,
    /// Of what is sent, and of what is received.
    paces: [Option<Arc<Pace>>; 2],
    may_wait: bool,
    /// Whether an address has shown another key than the pinned one.
    met_another: Arc<AtomicBool>,
}

impl Line {
    async fn dial_host(&self, host: &str, from: Option<IpAddr>) -> io::Result<TlsStream<Socket>> {
        race(
            addresses(host)
                .await?
                .into_iter()
                .map(|address| self.clone().dial_address(address, from)),
        )
        .await
    }

    async fn dial_address(
        self,
        address: SocketAddr,
        from: Option<IpAddr>,
    ) -> io::Result<TlsStream<Socket>> {
        let tcp = connect(address, from).await?;
        prepare(&tcp)?;
        if self.may_wait {
            mark_as_patient(&tcp);
        }
        let socket = Socket::new(tcp, self.meter, self.wire, self.paces);
        let connected = self.tls.connect(tls::server_name(), socket).await;
        if connected.as_ref().is_err_and(tls::is_wrong_server) {
            self.met_another.store(true, Ordering::Relaxed);
        }
        connected.map_err(tls::in_words)
    }
}

/// The addresses of a host, looked up on a thread of its own: the runtime's panics where none can be started.
async fn addresses(host: &str) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse() {
        return Ok(vec![address]);
    }
    let (tell, told) = oneshot::channel();
    let host = host.to_owned();
    // Who waits no longer is not told.
    let look_up = move || drop(tell.send(host.to_socket_addrs().map(Iterator::collect)));
    holdall_sys::thread::start_alone(look_up)?;
    told.await.map_err(io::Error::other)?
}

/// What the first of these gives that gives anything. Each is begun once the one before it failed, or has
/// had a head start.
///
/// # Errors
/// The last one's.
async fn race<T: Send + 'static>(
    attempts: impl Iterator<Item = impl Future<Output = io::Result<T>> + Send + 'static>,
) -> io::Result<T> {
    let mut attempts = attempts.fuse();
    let mut running = JoinSet::new();
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    loop {
        let is_last = attempts.next().map(|attempt| running.spawn(attempt)).is_none();
        let ended = match is_last {
            true => running.join_next().await,
            false => match timeout(HEAD_START, running.join_next()).await {
                Ok(ended) => ended,
                Err(_) => continue,
            },
        };
        match ended {
            None => return Err(failure),
            Some(Ok(Ok(found))) => return Ok(found),
            Some(Ok(Err(error))) => failure = error,
            Some(Err(_)) => {}
        }
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

/// The DSCP of what may wait for all else, 1 (RFC 8622), where it is in the old field of types of service.
const LOWER_EFFORT: u8 = 1 << 2;

/// Says in each packet that it may wait for all others. Where that is not possible, they go as others do.
fn mark_as_patient(tcp: &TcpStream) {
    use rustix::net::sockopt;
    let is_v4 = tcp.peer_addr().is_ok_and(|peer| peer.is_ipv4());
    let _ = match is_v4 {
        true => sockopt::set_ip_tos(tcp, LOWER_EFFORT),
        false => sockopt::set_ipv6_tclass(tcp, LOWER_EFFORT.into()),
    };
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::pin::Pin;

    use super::*;

    type Attempt = Pin<Box<dyn Future<Output = io::Result<u8>> + Send>>;

    #[tokio::test]
    async fn who_never_answers_keeps_nobody_from_being_asked() {
        let silent = || -> Attempt { Box::pin(pending()) };
        let refused = || -> Attempt { Box::pin(ready(Err(io::Error::other("refused")))) };
        let answers = |number| -> Attempt { Box::pin(ready(Ok(number))) };
        let raced = race([silent(), refused(), answers(3)].into_iter());
        let raced = timeout(Duration::from_secs(60), raced).await.expect("nobody is waited for");
        assert_eq!(raced.unwrap(), 3);
        assert_eq!(race([answers(1), silent()].into_iter()).await.unwrap(), 1);
        let failed = race([refused(), refused()].into_iter()).await.unwrap_err();
        assert_eq!(failed.to_string(), "refused");
        race(std::iter::empty::<Attempt>()).await.unwrap_err();
    }
}
