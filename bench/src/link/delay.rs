//! A TCP proxy that hands everything on half a round trip later, where the kernel has no netem.
//!
//! Each chunk waits on its own, so that as much as one likes is on the way and the delay does not
//! limit the bandwidth. A connection opens a round trip late, as its handshake would.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::{LOOPBACK, one_way};

const CHUNK_BYTES: usize = 64 << 10;

/// Listens until it goes; connections that are open then live on until their ends close them.
pub(crate) struct DelayProxy {
    port: u16,
    is_over: Arc<AtomicBool>,
}

impl DelayProxy {
    /// Listens on a free port of loopback for what is to go to `to_port`.
    ///
    /// # Errors
    ///
    /// If no port is free.
    pub(crate) fn start(to_port: u16, round_trip: Duration) -> Result<Self> {
        let listener = TcpListener::bind((LOOPBACK, 0)).context("no port for the delay")?;
        let port = listener.local_addr()?.port();
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if seen.load(Ordering::Relaxed) {
                    return;
                }
                std::thread::spawn(move || join(&client, to_port, round_trip));
            }
        });
        Ok(Self { port, is_over })
    }

    /// Where it listens.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for DelayProxy {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        drop(TcpStream::connect((LOOPBACK, self.port)));
    }
}

/// Joins `client` to the server until both have closed.
fn join(client: &TcpStream, to_port: u16, round_trip: Duration) {
    std::thread::sleep(round_trip);
    // Dropping the client is what it sees if the server does not answer.
    let Ok(server) = TcpStream::connect((LOOPBACK, to_port)) else { return };
    std::thread::scope(|scope| {
        scope.spawn(|| pump(client, &server, one_way(round_trip)));
        scope.spawn(|| pump(&server, client, one_way(round_trip)));
    });
}

/// Hands on what comes `from` one end, each chunk `delay` after it came.
fn pump(from: &TcpStream, to: &TcpStream, delay: Duration) {
    drop(to.set_nodelay(true));
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| take(from, delay, sender));
        hand_on(&receiver, to);
    });
}

/// A chunk and when it is due; an empty one is the end.
type Due = (Instant, Vec<u8>);

fn take(mut from: &TcpStream, delay: Duration, sender: Sender<Due>) {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        // An end that was reset is an end too.
        let len_bytes = from.read(&mut buffer).unwrap_or(0);
        let is_taken = sender.send((Instant::now() + delay, buffer[..len_bytes].to_vec()));
        if len_bytes == 0 || is_taken.is_err() {
            return;
        }
    }
}

fn hand_on(receiver: &Receiver<Due>, mut to: &TcpStream) {
    for (due, chunk) in receiver {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if chunk.is_empty() || to.write_all(&chunk).is_err() {
            break;
        }
    }
    drop(to.shutdown(Shutdown::Write));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_whole_and_late() {
        let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let echo = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            stream.write_all(&all).unwrap();
        });
        let round_trip = Duration::from_millis(40);
        let proxy = DelayProxy::start(port, round_trip).unwrap();
        let start = Instant::now();
        let mut client = TcpStream::connect((LOOPBACK, proxy.port())).unwrap();
        let sent: Vec<u8> = (0..300_000u32).map(|at| at as u8).collect();
        client.write_all(&sent).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut received = Vec::new();
        client.read_to_end(&mut received).unwrap();
        assert!(received == sent);
        // The handshake, and there and back.
        assert!(start.elapsed() >= 2 * round_trip);
        echo.join().unwrap();
    }
}
