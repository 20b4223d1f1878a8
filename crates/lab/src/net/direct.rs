//! Calling a listener: the other half of its protocol.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType};

use super::end::{Sink, Source};
use super::far::{Carrier, Direction, Far, Job, Moved};
use super::message::{
    ANSWER_BYTES, Answer, Ask, BadMessage, Counted, FarEnd, GO, GREETING_BYTES, Greeting,
    Operation, PING_BYTES, RESULT_BYTES,
};
use super::pump::{self, SILENCE};
use super::{MIN_BUFFER_BYTES, Token, Wait};

/// A listener has so long to greet.
const GREETS_WITHIN: Duration = Duration::from_secs(5);
/// It has so long to answer: it may have to write a scratch file first.
const ANSWERS_WITHIN: Duration = Duration::from_secs(120);
/// Between two round trips, so that they load nothing themselves.
const BETWEEN_TRIPS: Duration = Duration::from_millis(10);

/// A listener on another computer.
#[derive(Debug, Clone)]
pub struct Direct {
    address: SocketAddr,
    token: Token,
}

impl Direct {
    /// The listener at `address`, and the token that it printed.
    pub fn new(address: SocketAddr, token: Token) -> Self {
        Self { address, token }
    }
}

impl Far for Direct {
    fn connect(&self, from: Option<IpAddr>) -> io::Result<Box<dyn Carrier + '_>> {
        let mut stream = match from {
            Some(from) => connect_from(from, self.address)?,
            None => TcpStream::connect_timeout(&self.address, SILENCE)?,
        };
        stream.set_nodelay(true)?;
        let mut greeting = [0; GREETING_BYTES];
        pump::read_by(&mut stream, &mut greeting, Instant::now() + GREETS_WITHIN)?;
        let nonce = Greeting::decode(&greeting)?.nonce;
        Ok(Box::new(Connection { stream, token: &self.token, nonce }))
    }

    fn buffer_bytes(&self, job: &Job) -> Option<u32> {
        Some(job.buffer_bytes)
    }
}

fn connect_from(from: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let family = if from.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket(family, SocketType::STREAM, None)?;
    rustix::net::bind(&socket, &SocketAddr::new(from, 0))?;
    rustix::net::sockopt::set_socket_timeout(
        &socket,
        rustix::net::sockopt::Timeout::Send,
        Some(SILENCE),
    )?;
    rustix::net::connect(&socket, &to)?;
    Ok(TcpStream::from(socket))
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
        let deadline = Instant::now() + ANSWERS_WITHIN;
        match pump::read_by(&mut self.stream, &mut answer, deadline) {
            // A listener says nothing to who has not its token.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(BadMessage::WrongToken.into());
            }
            read => read?,
        }
        Answer::decode(&answer).0.map_err(|reason| BadMessage::Refused(reason).into())
    }

    fn send(&mut self, job: &Job, stop: &AtomicBool) -> io::Result<Moved> {
        let mut source = Source::new(&job.near, job.buffer_bytes);
        pump::give(&mut self.stream, &mut source, job.duration, stop)?;
        self.stream.shutdown(Shutdown::Write)?;
        let mut counted = [0; RESULT_BYTES];
        pump::read_by(&mut self.stream, &mut counted, Instant::now() + ANSWERS_WITHIN)?;
        let counted = Counted::decode(&counted);
        let latency = if job.far_file { counted.latency } else { source.reads.latency() };
        Ok(Moved {
            bytes: counted.bytes,
            duration: counted.duration,
            latency,
            far_retransmits: counted.retransmits,
        })
    }

    fn receive(&mut self, job: &Job, stop: &AtomicBool) -> io::Result<Moved> {
        let mut sink = Sink::new(&job.near, job.wait);
        self.stream.write_all(&[GO])?;
        let taken = pump::take(&mut self.stream, &mut sink, job.buffer_bytes, job.duration, stop)?;
        let counted = taken.last.as_ref().map(Counted::decode).unwrap_or_default();
        let latency = if job.far_file { counted.latency } else { sink.writes.latency() };
        Ok(Moved {
            bytes: taken.bytes.saturating_sub(RESULT_BYTES as u64),
            duration: taken.duration,
            latency,
            far_retransmits: counted.retransmits,
        })
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
    }

    fn carry(&mut self, job: &Job, stop: &AtomicBool) -> io::Result<Moved> {
        match job.direction {
            Direction::Send => self.send(job, stop),
            Direction::Receive => self.receive(job, stop),
        }
    }

    fn round_trips(
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
