//! Calling a listener: the other half of its protocol.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, SocketAddrV6, TcpStream};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::end::{Sink, Source};
use super::far::{Carrier, Direction, Far, Job, Moved};
use super::message::{
    ANSWER_BYTES, Answer, Ask, BadMessage, Counted, FarEnd, GO, GREETING_BYTES, Greeting,
    Operation, PING_BYTES, RESULT_BYTES,
};
use super::pump::{self, SILENCE};
use super::{MIN_BUFFER_BYTES, Token, Wait};

/// Each of several addresses has so long to answer.
const TRIES_FOR: Duration = Duration::from_secs(3);
/// A listener has so long to greet.
const GREETS_WITHIN: Duration = Duration::from_secs(5);
/// It has so long to answer: it may have to write a scratch file first.
const ANSWERS_WITHIN: Duration = Duration::from_secs(120);
/// Between two round trips, so that they load nothing themselves.
const BETWEEN_TRIPS: Duration = Duration::from_millis(10);

/// A listener on another computer.
#[derive(Debug, Clone)]
pub struct Direct {
    addresses: Vec<SocketAddr>,
    /// The one that answered: the others are not tried again for each stream.
    answered: OnceLock<SocketAddr>,
    token: Token,
}

impl Direct {
    /// The listener at the first of `addresses` that answers, and the token that it printed.
    pub fn new(addresses: Vec<SocketAddr>, token: Token) -> Self {
        Self { addresses, answered: OnceLock::new(), token }
    }

    /// A connection to the address that answered before, or else to the first that does.
    fn reach(&self, from: Option<IpAddr>) -> io::Result<TcpStream> {
        let fits = |to: &SocketAddr| from.is_none_or(|from| from.is_ipv4() == to.is_ipv4());
        if let Some(known) = self.answered.get().copied().filter(fits) {
            return connect_to(known, from, SILENCE);
        }
        let fitting: Vec<_> = self.addresses.iter().copied().filter(fits).collect();
        let patience = if fitting.len() > 1 { TRIES_FOR } else { SILENCE };
        let mut failures = Vec::new();
        for to in fitting {
            match connect_to(to, from, patience) {
                Ok(stream) => {
                    self.answered.get_or_init(|| to);
                    return Ok(stream);
                }
                Err(error) => failures.push((to, error)),
            }
        }
        Err(unreached(failures))
    }
}

/// Why no address answered: of each, where there are several.
fn unreached(mut failures: Vec<(SocketAddr, io::Error)>) -> io::Error {
    let Some((to, last)) = failures.pop() else {
        let why = "it has no address of the kind (IPv4 or IPv6) that is to be connected from";
        return io::Error::new(io::ErrorKind::InvalidInput, why);
    };
    if failures.is_empty() {
        return last;
    }
    failures.push((to, last));
    // An address that this computer cannot even try, such as IPv6 without any, says nothing of the other.
    let kinds = || failures.iter().map(|(_, error)| error.kind());
    let kind = kinds().find(|kind| *kind != io::ErrorKind::AddrNotAvailable);
    let kind = kind.or_else(|| kinds().next()).unwrap_or(io::ErrorKind::NotConnected);
    let each: Vec<_> = failures.iter().map(|(to, error)| format!("{to}: {error}")).collect();
    io::Error::new(kind, each.join("; "))
}

/// A connection that ended before it was done, however the system tells that, has one kind of error.
fn lost(error: io::Error) -> io::Error {
    use io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof,
    };
    match error.kind() {
        BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | UnexpectedEof => gone(),
        _ => error,
    }
}

fn gone() -> io::Error {
    let why = "the connection was lost: the other end ended before it was done";
    io::Error::new(io::ErrorKind::ConnectionReset, why)
}

impl Far for Direct {
    fn connect(&self, from: Option<IpAddr>) -> io::Result<Box<dyn Carrier + '_>> {
        let mut stream = self.reach(from)?;
        stream.set_nodelay(true)?;
        // That of the attempt to connect was shorter.
        stream.set_write_timeout(Some(SILENCE))?;
        let mut greeting = [0; GREETING_BYTES];
        let deadline = Instant::now() + GREETS_WITHIN;
        pump::read_by(&mut stream, &mut greeting, deadline).map_err(lost)?;
        let nonce = Greeting::decode(&greeting)?.nonce;
        Ok(Box::new(Connection { stream, token: &self.token, nonce }))
    }

    fn pieces_bytes(&self, asked_bytes: u32, _near_file: bool) -> Option<u32> {
        Some(asked_bytes)
    }
}

fn connect_to(to: SocketAddr, from: Option<IpAddr>, patience: Duration) -> io::Result<TcpStream> {
    let Some(from) = from else { return TcpStream::connect_timeout(&to, patience) };
    let family = if from.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    rustix::net::bind(&socket, &local(from, to))?;
    set_socket_timeout(&socket, Timeout::Send, Some(patience))?;
    rustix::net::connect(&socket, &to).map_err(|errno| match errno {
        // A socket's time limit shows as a connection that is still being made.
        Errno::INPROGRESS => io::Error::from(io::ErrorKind::TimedOut),
        other => io::Error::from(other),
    })?;
    Ok(TcpStream::from(socket))
}

/// Any port of an address of this computer; one that is good on a link alone is meant on the link
/// that the other end's is on.
fn local(from: IpAddr, to: SocketAddr) -> SocketAddr {
    match (from, to) {
        (IpAddr::V6(from), SocketAddr::V6(to)) => {
            SocketAddrV6::new(from, 0, 0, to.scope_id()).into()
        }
        (from, _) => SocketAddr::new(from, 0),
    }
}

/// A connection to a listener, which has greeted.
struct Connection<'a> {
    stream: TcpStream,
    token: &'a Token,
    nonce: [u8; 16],
}

impl Connection<'_> {
    fn ask(&mut self, ask: &Ask) -> io::Result<()> {
        self.stream.write_all(&ask.encode(self.token, &self.nonce))?;
        let mut answer = [0; ANSWER_BYTES];
        pump::read_by(&mut self.stream, &mut answer, Instant::now() + ANSWERS_WITHIN)?;
        match Answer::decode(&answer) {
            Answer::Agreed => Ok(()),
            Answer::WrongToken => Err(BadMessage::WrongToken.into()),
            Answer::Refused(reason) => Err(BadMessage::Refused(reason).into()),
        }
    }

    fn send(&mut self, job: &Job, stop: &AtomicBool) -> io::Result<Moved> {
        let mut source = Source::new(&job.near, job.buffer_bytes);
        let sent_bytes = pump::give(&mut self.stream, &mut source, job.duration, stop)?;
        self.stream.shutdown(Shutdown::Write)?;
        let mut last = [0; RESULT_BYTES];
        pump::read_by(&mut self.stream, &mut last, Instant::now() + ANSWERS_WITHIN)?;
        let counted = result_of(Some(&last), sent_bytes)?;
        let latency = if job.far_file { counted.latency } else { source.latency() };
        Ok(Moved {
            bytes: counted.bytes,
            duration: counted.duration,
            ended: Some(Instant::now()),
            latency,
            far_retransmits: counted.retransmits,
        })
    }

    fn receive(&mut self, job: &Job, stop: &AtomicBool) -> io::Result<Moved> {
        let mut sink = Sink::new(&job.near, job.wait);
        self.stream.write_all(&[GO])?;
        let taken = pump::take(&mut self.stream, &mut sink, job.buffer_bytes, job.duration, stop)?;
        let bytes = taken.bytes.saturating_sub(RESULT_BYTES as u64);
        let counted = result_of(taken.last.as_ref(), bytes)?;
        let latency = if job.far_file { counted.latency } else { sink.latency() };
        Ok(Moved {
            bytes,
            duration: taken.duration,
            ended: Some(taken.begun + taken.duration),
            latency,
            far_retransmits: counted.retransmits,
        })
    }
}

/// What the listener counted of `bytes` that went one way; it ended with that if it was done.
fn result_of(last: Option<&[u8; RESULT_BYTES]>, bytes: u64) -> io::Result<Counted> {
    let counted = last.and_then(Counted::decode).ok_or_else(gone)?;
    match counted.bytes == bytes {
        true => Ok(counted),
        false => {
            let field = "the number of bytes that the listener counted";
            Err(BadMessage::OutOfRange { field, value: counted.bytes }.into())
        }
    }
}

impl Carrier for Connection<'_> {
    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        Some((self.stream.local_addr().ok()?, self.stream.peer_addr().ok()?))
    }

    fn prepare(&mut self, job: &Job) -> io::Result<()> {
        self.ask(&Ask {
            operation: match job.direction {
                Direction::Send => Operation::Take,
                Direction::Receive => Operation::Give,
            },
            end: if job.far_file { FarEnd::File } else { FarEnd::Memory },
            wait: job.wait,
            duration: job.duration,
            buffer_bytes: job.buffer_bytes,
        })
        .map_err(lost)
    }

    fn carry(&mut self, job: &Job, stop: &AtomicBool) -> io::Result<Moved> {
        match job.direction {
            Direction::Send => self.send(job, stop),
            Direction::Receive => self.receive(job, stop),
        }
        .map_err(lost)
    }

    fn round_trips(
        &mut self,
        most: usize,
        within: Duration,
        stop: &AtomicBool,
    ) -> io::Result<Vec<Duration>> {
        self.trips(most, within, stop).map_err(lost)
    }
}

impl Connection<'_> {
    fn trips(
        &mut self,
        most: usize,
        within: Duration,
        stop: &AtomicBool,
    ) -> io::Result<Vec<Duration>> {
        let started = Instant::now();
        self.ask(&Ask {
            operation: Operation::Echo,
            end: FarEnd::Memory,
            wait: Wait::Never,
            duration: Duration::from_secs(super::MAX_SECONDS),
            buffer_bytes: MIN_BUFFER_BYTES,
        })?;
        self.stream.set_read_timeout(Some(SILENCE))?;
        let mut trips = Vec::new();
        // The listener ends it after the time that was asked for.
        let within = within.min(Duration::from_secs(super::MAX_SECONDS - 1));
        let is_over = || started.elapsed() >= within || stop.load(Ordering::Relaxed);
        while trips.len() < most && !is_over() {
            let begun = Instant::now();
            self.stream.write_all(&[0x5a; PING_BYTES])?;
            self.stream.read_exact(&mut [0; PING_BYTES])?;
            trips.push(begun.elapsed());
            std::thread::sleep(BETWEEN_TRIPS);
        }
        // What the listener thinks of this does not matter any more.
        let _ = self.stream.shutdown(Shutdown::Both);
        Ok(trips)
    }
}
