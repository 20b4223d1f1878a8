//! A network that is far away: a TCP proxy on loopback that holds everything back for a time, as
//! distance does. It does not make anything slower than that: what is on its way does not wait for
//! what went before.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const PIECE_BYTES: usize = 64 * 1024;
/// So many pieces may be on their way in one direction: 64 MiB.
const PIECES: usize = 1024;

/// A proxy between a client and a server; it takes no more connections once it is dropped.
#[derive(Debug)]
pub struct DelayProxy {
    address: SocketAddr,
    stopped: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl DelayProxy {
    /// Starts a proxy to `upstream` on a free port of loopback; what it gets goes on after `delay`,
    /// in both directions, so that a round trip takes twice as long.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn start(upstream: SocketAddr, delay: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let stopped = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stopped);
        let acceptor = std::thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                if stopping.load(Ordering::SeqCst) {
                    break;
                }
                // A client whose server cannot be reached sees its connection end.
                let _ = link(client, upstream, delay);
            }
        });
        Ok(Self { address, stopped, acceptor: Some(acceptor) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
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

/// Connects one client through. Its threads end with its connections.
fn link(client: TcpStream, upstream: SocketAddr, delay: Duration) -> io::Result<()> {
    let server = TcpStream::connect(upstream)?;
    for socket in [&client, &server] {
        socket.set_nodelay(true)?;
    }
    for (from, to) in [(client.try_clone()?, server.try_clone()?), (server, client)] {
        let (sender, pieces) = sync_channel(PIECES);
        std::thread::spawn(move || take(from, &sender, delay));
        std::thread::spawn(move || pass_on(to, &pieces));
    }
    Ok(())
}

/// When a piece is due, and its bytes; none of them is the end.
type Piece = (Instant, Vec<u8>);

fn take(mut from: TcpStream, sender: &SyncSender<Piece>, delay: Duration) {
    loop {
        let mut piece = vec![0; PIECE_BYTES];
        let length = from.read(&mut piece).unwrap_or(0);
        piece.truncate(length);
        if sender.send((Instant::now() + delay, piece)).is_err() || length == 0 {
            return;
        }
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

    #[test]
    fn everything_arrives_in_order_and_not_before_its_time() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let upstream = listener.local_addr().expect("bound");
        let echo = std::thread::spawn(move || {
            let (stream, _) = listener.accept().expect("it is connected through");
            io::copy(&mut &stream, &mut &stream).expect("unharmed")
        });
        let proxy = DelayProxy::start(upstream, Duration::from_millis(30)).expect("a free port");
        let mut stream = TcpStream::connect(proxy.address()).expect("it listens");
        let begun = Instant::now();
        let content: Vec<u8> = (0..200_000_u32).map(|at| at as u8).collect();
        stream.write_all(&content).expect("unharmed");
        stream.shutdown(Shutdown::Write).expect("unharmed");
        let mut back = Vec::new();
        stream.read_to_end(&mut back).expect("unharmed");
        assert!(begun.elapsed() >= Duration::from_millis(60));
        assert!(back == content && echo.join().expect("it ends") == 200_000);
    }
}
