//! A network that is far away, and perhaps slow: a TCP proxy on loopback that holds everything back
//! for a time, as distance does, where the kernel has no netem.
//!
//! What is on its way does not wait for what went before, so the delay does not limit the bandwidth;
//! a rate does, and all connections share it, as they share a line. A connection opens a round trip
//! late, as its handshake would.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const PIECE_BYTES: u64 = 64 * 1024;
/// A piece is short enough to take no longer than about this on a slow line.
const PIECES_PER_SECOND: u64 = 100;
/// So many pieces may be on their way in one direction: 64 MiB at most.
const PIECES: usize = 1024;

/// A proxy between a client and a server; it takes no more connections once it is dropped.
#[derive(Debug)]
pub struct DelayProxy {
    address: SocketAddr,
    stopped: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
    distance: Arc<Distance>,
}

/// What lies between both ends.
#[derive(Debug)]
struct Distance {
    delay: Duration,
    up: Line,
    down: Line,
}

/// One direction.
#[derive(Debug)]
struct Line {
    bytes_per_second: Option<u64>,
    /// When what was handed to it has left.
    free_at: Mutex<Instant>,
    carried_bytes: AtomicU64,
}

impl DelayProxy {
    /// Starts a proxy to `upstream` on a free port of loopback; what it gets goes on after `delay`,
    /// in both directions, so that a round trip takes twice as long, and no faster than
    /// `bytes_per_second` each way.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn start(
        upstream: SocketAddr,
        delay: Duration,
        bytes_per_second: Option<u64>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let stopped = Arc::new(AtomicBool::new(false));
        let (up, down) = (Line::new(bytes_per_second), Line::new(bytes_per_second));
        let distance = Arc::new(Distance { delay, up, down });
        let (stopping, between) = (Arc::clone(&stopped), Arc::clone(&distance));
        let acceptor = std::thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                if stopping.load(Ordering::SeqCst) {
                    break;
                }
                let between = Arc::clone(&between);
                // A client whose server cannot be reached sees its connection end.
                std::thread::spawn(move || link(client, upstream, &between));
            }
        });
        Ok(Self { address, stopped, acceptor: Some(acceptor), distance })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Bytes that it took from clients and from servers until now.
    #[must_use]
    pub fn carried_bytes(&self) -> (u64, u64) {
        let carried = |line: &Line| line.carried_bytes.load(Ordering::Relaxed);
        (carried(&self.distance.up), carried(&self.distance.down))
    }
}

impl Drop for DelayProxy {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Wakes the acceptor; if it cannot be reached it has ended.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

impl Line {
    fn new(bytes_per_second: Option<u64>) -> Self {
        let free_at = Mutex::new(Instant::now());
        Self { bytes_per_second, free_at, carried_bytes: AtomicU64::new(0) }
    }

    fn piece_bytes(&self) -> usize {
        let piece = self.bytes_per_second.map(|rate| rate / PIECES_PER_SECOND);
        piece.unwrap_or(PIECE_BYTES).clamp(512, PIECE_BYTES) as usize
    }

    /// Sends so many bytes after what was sent before, and says when the last of them has left.
    fn send(&self, len_bytes: usize) -> Instant {
        self.carried_bytes.fetch_add(len_bytes as u64, Ordering::Relaxed);
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = self.bytes_per_second.map(|rate| len_bytes as f64 / rate.max(1) as f64);
        *free_at = (*free_at).max(Instant::now()) + Duration::from_secs_f64(taken.unwrap_or(0.0));
        *free_at
    }
}

/// Connects one client through. Its threads end with its connections.
fn link(client: TcpStream, upstream: SocketAddr, distance: &Arc<Distance>) -> io::Result<()> {
    std::thread::sleep(2 * distance.delay);
    let server = TcpStream::connect(upstream)?;
    for socket in [&client, &server] {
        socket.set_nodelay(true)?;
    }
    let ways = [(client.try_clone()?, server.try_clone()?, true), (server, client, false)];
    for (from, to, is_up) in ways {
        let (sender, pieces) = sync_channel(PIECES);
        let distance = Arc::clone(distance);
        std::thread::spawn(move || {
            let line = if is_up { &distance.up } else { &distance.down };
            take(from, &sender, line, distance.delay);
        });
        std::thread::spawn(move || pass_on(to, &pieces));
    }
    Ok(())
}

/// When a piece is due, and its bytes; none of them is the end.
type Piece = (Instant, Vec<u8>);

fn take(mut from: TcpStream, sender: &SyncSender<Piece>, line: &Line, delay: Duration) {
    loop {
        let mut piece = vec![0; line.piece_bytes()];
        // An end that was reset is an end too.
        let length = from.read(&mut piece).unwrap_or(0);
        piece.truncate(length);
        let left = line.send(length);
        if sender.send((left + delay, piece)).is_err() || length == 0 {
            return;
        }
        // The line is no store: who sends faster than it carries is to wait, and to know it.
        std::thread::sleep(left.saturating_duration_since(Instant::now()));
    }
}

fn pass_on(mut to: TcpStream, pieces: &Receiver<Piece>) {
    while let Ok((due, piece)) = pieces.recv() {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if piece.is_empty() || to.write_all(&piece).is_err() {
            let _ = to.shutdown(Shutdown::Write);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `len_bytes` to somebody who sends them back; says how long that took.
    fn there_and_back(len_bytes: u32, delay: Duration, rate: Option<u64>) -> Duration {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let upstream = listener.local_addr().expect("bound");
        let echo = std::thread::spawn(move || {
            let (stream, _) = listener.accept().expect("it is connected through");
            io::copy(&mut &stream, &mut &stream).expect("unharmed")
        });
        let proxy = DelayProxy::start(upstream, delay, rate).expect("a free port");
        let begun = Instant::now();
        let mut stream = TcpStream::connect(proxy.address()).expect("it listens");
        let content: Vec<u8> = (0..len_bytes).map(|at| at as u8).collect();
        let sender = stream.try_clone().expect("a socket");
        let (sent, mut back) = (content.clone(), Vec::new());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                (&sender).write_all(&sent).expect("unharmed");
                sender.shutdown(Shutdown::Write).expect("unharmed");
            });
            stream.read_to_end(&mut back).expect("unharmed");
        });
        assert!(back == content && echo.join().expect("it ends") == u64::from(len_bytes));
        let both = u64::from(len_bytes);
        assert_eq!(proxy.carried_bytes(), (both, both));
        begun.elapsed()
    }

    #[test]
    fn everything_arrives_in_order_and_not_before_its_time() {
        let delay = Duration::from_millis(30);
        // The handshake, and there and back.
        assert!(there_and_back(200_000, delay, None) >= 4 * delay);
    }

    #[test]
    fn a_slow_line_carries_no_more_than_its_rate() {
        let taken = there_and_back(50_000, Duration::ZERO, Some(100_000));
        assert!(taken >= Duration::from_millis(490), "{taken:?}");
    }
}
