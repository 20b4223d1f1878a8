//! The listener: answers measurements on a computer without a server.
//!
//! Bounds: a connection has 5 seconds to prove the token, then 60 for its job and what is around
//! it; there are at most 80 at a time, and the next ones are closed at once.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use super::end::{ScratchFile, ScratchFolder, Sink, Source};
use super::message::{
    ASK_BYTES, Answer, Ask, BadMessage, Counted, FarEnd, Greeting, Operation, PING_BYTES,
};
use super::pump::{self, SILENCE};
use super::retransmits::retransmits;
use super::{End, MAX_STREAMS, Token};

/// Streams both ways at once, and those that measure round trips.
const MOST_CONNECTIONS: usize = MAX_STREAMS + 16;
const PROVES_WITHIN: Duration = Duration::from_secs(5);
/// Other streams may have to be made ready first.
const GOES_WITHIN: Duration = Duration::from_secs(120);
/// Callers that wait to be accepted.
const BACKLOG: i32 = 128;
/// After a failed accept, such as without descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// What a listener is started with.
pub struct ListenerOptions {
    /// Where to listen; port 0 takes a free one. `[::]` listens on IPv4, too, and on that alone
    /// where there is no IPv6.
    pub listen: SocketAddr,
    /// Who may use it.
    pub token: Token,
    /// Where scratch files may be made; without it, only memory is measured.
    pub folder: Option<PathBuf>,
    /// How long the scratch file that is read may be; and those that are written, all together.
    pub scratch_bytes: u64,
    /// Random bytes, which make each nonce another one together with a counter.
    pub seed: [u8; 32],
    /// Told what happens, a line each.
    pub log: Box<dyn Fn(&str) + Send + Sync>,
}

/// A listener that answers measurements until it is stopped.
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
    options: ListenerOptions,
    stopping: Arc<AtomicBool>,
    open: Mutex<Open>,
    /// Where each connection that writes has a file of its own.
    scratch: Option<ScratchFolder>,
    /// The file that is read, made once.
    filled: Mutex<Option<ScratchFile>>,
}

/// The connections that are open, to end them.
#[derive(Default)]
struct Open {
    accepted: u64,
    streams: HashMap<u64, TcpStream>,
}

impl Listener {
    /// Begins to listen; [`Listener::serve`] answers.
    ///
    /// # Errors
    /// What the system says, of the folder too.
    pub fn bind(options: ListenerOptions) -> io::Result<Self> {
        let folder = options.folder.as_deref();
        let scratch = folder.map(|folder| ScratchFolder::new(folder, options.scratch_bytes));
        let scratch = scratch.transpose()?;
        let listener = listen_on(options.listen)?;
        Ok(Self {
            address: listener.local_addr()?,
            listener,
            options,
            scratch,
            stopping: Arc::default(),
            open: Mutex::default(),
            filled: Mutex::default(),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes [`Self::serve`] return soon; also when it has not begun.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        // On Linux this ends a waiting accept, and later ones too.
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        for stream in self.open().streams.values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Answers until [`Self::stop`] is called.
    pub fn serve(&self) {
        std::thread::scope(|scope| {
            while !self.stopping.load(Ordering::SeqCst) {
                match self.listener.accept() {
                    Ok((stream, peer)) => {
                        let Some(number) = self.admit(&stream) else { continue };
                        scope.spawn(move || {
                            self.answer(stream, peer);
                            self.open().streams.remove(&number);
                        });
                    }
                    Err(_) if self.stopping.load(Ordering::SeqCst) => {}
                    Err(error) => {
                        (self.options.log)(&format!("accepting: {error}"));
                        std::thread::sleep(PAUSE);
                    }
                }
            }
        });
    }

    /// Counts a connection in, unless there are too many.
    fn admit(&self, stream: &TcpStream) -> Option<u64> {
        let clone = stream.try_clone().ok()?;
        let mut open = self.open();
        if open.streams.len() >= MOST_CONNECTIONS || self.stopping.load(Ordering::SeqCst) {
            return None;
        }
        open.accepted += 1;
        let number = open.accepted;
        open.streams.insert(number, clone);
        Some(number)
    }

    fn answer(&self, mut stream: TcpStream, peer: SocketAddr) {
        let told = match self.converse(&mut stream) {
            Ok(done) => done,
            Err(error) => error.to_string(),
        };
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        (self.options.log)(&format!("{peer}: {told}"));
        let _ = stream.shutdown(Shutdown::Both);
    }

    /// One connection, from greeting to result; what was done in words.
    fn converse(&self, stream: &mut TcpStream) -> io::Result<String> {
        let deadline = Instant::now() + PROVES_WITHIN;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(PROVES_WITHIN))?;
        let nonce = self.nonce(stream)?;
        stream.write_all(&Greeting { nonce }.encode())?;
        let mut asked = [0; ASK_BYTES];
        pump::read_by(stream, &mut asked, deadline)?;
        let ask = match Ask::decode(&asked, &self.options.token, &nonce) {
            Ok(ask) => ask,
            // A stranger is told no more than that, so that a listener that died is not taken for
            // one that refuses.
            Err(error @ BadMessage::WrongToken) => {
                stream.write_all(&Answer::WrongToken.encode())?;
                return Err(error.into());
            }
            Err(error) => return refuse(stream, error.to_string()),
        };
        let end = match self.end_for(&ask) {
            Ok(end) => end,
            Err(error) => return refuse(stream, error.to_string()),
        };
        let job = Answering { stream, ask: &ask, end, stopping: &self.stopping };
        match ask.operation {
            Operation::Echo => job.echo(),
            Operation::Take => job.take(),
            Operation::Give => job.give(),
        }
    }

    /// Sixteen bytes that no other greeting of this listener had.
    fn nonce(&self, stream: &TcpStream) -> io::Result<[u8; 16]> {
        let mut hasher = blake3::Hasher::new_keyed(&self.options.seed);
        hasher.update(&self.open().accepted.to_le_bytes());
        hasher.update(stream.peer_addr()?.to_string().as_bytes());
        let mut nonce = [0; 16];
        hasher.finalize_xof().fill(&mut nonce);
        Ok(nonce)
    }

    fn end_for(&self, ask: &Ask) -> io::Result<End> {
        if ask.end == FarEnd::Memory || ask.operation == Operation::Echo {
            return Ok(End::Memory);
        }
        let (Some(folder), Some(scratch)) = (&self.options.folder, &self.scratch) else {
            let why = "it was started without --dir, where files may be";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        };
        Ok(End::File(match ask.operation {
            Operation::Give => self.filled_in(folder)?,
            _ => scratch.file(ask.buffer_bytes)?,
        }))
    }

    fn filled_in(&self, folder: &Path) -> io::Result<ScratchFile> {
        let mut filled = self.filled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &*filled {
            return Ok(file.clone());
        }
        let file = ScratchFile::filled(folder, self.options.scratch_bytes)?;
        Ok(filled.insert(file).clone())
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A listening socket, on IPv4 too where `[::]` is asked for.
fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    if address.ip() != IpAddr::V6(Ipv6Addr::UNSPECIFIED) {
        return TcpListener::bind(address);
    }
    match listen_on_both(address) {
        Err(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL) => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port()))
        }
        listening => Ok(listening?),
    }
}

/// On both kinds of addresses, whatever `net.ipv6.bindv6only` says.
fn listen_on_both(address: SocketAddr) -> Result<TcpListener, Errno> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET6, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_ipv6_v6only(&socket, false)?;
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(TcpListener::from(socket))
}

fn refuse(stream: &mut TcpStream, reason: String) -> io::Result<String> {
    let told = format!("refused: {reason}");
    stream.write_all(&Answer::Refused(reason).encode())?;
    Ok(told)
}

/// One job of one connection, asked for by who has the token.
struct Answering<'a> {
    stream: &'a mut TcpStream,
    ask: &'a Ask,
    end: End,
    stopping: &'a AtomicBool,
}

impl Answering<'_> {
    fn agree(&mut self) -> io::Result<()> {
        self.stream.write_all(&Answer::Agreed.encode())
    }

    fn echo(mut self) -> io::Result<String> {
        self.agree()?;
        self.stream.set_read_timeout(Some(SILENCE))?;
        let (begun, mut trips, mut ping) = (Instant::now(), 0_u64, [0; PING_BYTES]);
        while begun.elapsed() < self.ask.duration && self.stream.read_exact(&mut ping).is_ok() {
            self.stream.write_all(&ping)?;
            trips += 1;
        }
        Ok(format!("sent {trips} round trips back"))
    }

    fn take(mut self) -> io::Result<String> {
        let before = retransmits(Path::new("/"));
        let mut sink = Sink::new(&self.end, self.ask.wait);
        self.agree()?;
        let Ask { buffer_bytes, duration, .. } = *self.ask;
        let taken = pump::take(self.stream, &mut sink, buffer_bytes, duration, self.stopping)?;
        let counted = Counted {
            bytes: taken.bytes,
            duration: taken.duration,
            retransmits: since(before),
            latency: sink.latency(),
        };
        // Who hears of the end asks for the next row, which is to have all of the room.
        drop(self.end);
        self.stream.write_all(&counted.encode())?;
        Ok(format!("took {} bytes", taken.bytes))
    }

    fn give(mut self) -> io::Result<String> {
        let mut source = Source::new(&self.end, self.ask.buffer_bytes);
        self.agree()?;
        pump::read_by(self.stream, &mut [0], Instant::now() + GOES_WITHIN)?;
        let (before, begun) = (retransmits(Path::new("/")), Instant::now());
        let bytes = pump::give(self.stream, &mut source, self.ask.duration, self.stopping)?;
        let counted = Counted {
            bytes,
            duration: begun.elapsed(),
            retransmits: since(before),
            latency: source.latency(),
        };
        self.stream.write_all(&counted.encode())?;
        Ok(format!("gave {bytes} bytes"))
    }
}

fn since(before: Option<u64>) -> Option<u64> {
    Some(retransmits(Path::new("/"))?.saturating_sub(before?))
}
