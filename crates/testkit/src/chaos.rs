//! A network that breaks when told to: a TCP proxy on loopback.
//!
//! It forwards until it has forwarded a chosen number of bytes, or until a command; then all of its
//! connections are reset in the middle of whatever they carried, or stay open and carry nothing any
//! more, and new ones go through again. Or bytes come alone, one after another.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::Random;

const BUFFER_BYTES: usize = 64 * 1024;
/// After a byte that comes alone: enough for whoever waits for it to see that there is no more.
const ALONE: Duration = Duration::from_micros(300);

/// A proxy between a client and a server; it ends, with its connections, when it is dropped.
#[derive(Debug)]
pub struct ChaosProxy {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct State {
    upstream: SocketAddr,
    refuses: bool,
    stopped: bool,
    links: Vec<Arc<Link>>,
    accepted: u64,
    cuts: u64,
    forwarded_bytes: u64,
    /// Of those, towards the server, by the client's address.
    sent_bytes: HashMap<IpAddr, u64>,
    cut_at_bytes: Option<u64>,
    later_cuts: Vec<u64>,
    stall_at_bytes: Option<u64>,
    stalled: u64,
    trickle: Option<Trickle>,
    bytes_per_second: Option<u64>,
    /// When the line has carried what it was given.
    free_at: Instant,
}

/// Where bytes come alone.
#[derive(Debug)]
struct Trickle {
    random: Random,
    mean_bytes: u64,
    len_bytes: u64,
    /// So many go before the next one that comes alone.
    together_bytes: u64,
    /// So many more come alone.
    alone_bytes: u64,
}

/// One connection: both of its sockets.
#[derive(Debug)]
struct Link {
    client: TcpStream,
    server: TcpStream,
    /// Nothing is forwarded any more.
    stalls: AtomicBool,
}

impl ChaosProxy {
    /// Starts a proxy to `upstream` on a free port of loopback.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn start(upstream: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let state = Arc::new(Mutex::new(State {
            upstream,
            refuses: false,
            stopped: false,
            links: Vec::new(),
            accepted: 0,
            cuts: 0,
            forwarded_bytes: 0,
            sent_bytes: HashMap::new(),
            cut_at_bytes: None,
            later_cuts: Vec::new(),
            stall_at_bytes: None,
            stalled: 0,
            trickle: None,
            bytes_per_second: None,
            free_at: Instant::now(),
        }));
        let shared = Arc::clone(&state);
        let acceptor = std::thread::spawn(move || accept_all(&listener, &shared));
        Ok(Self { address, state, acceptor: Some(acceptor) })
    }

    /// Where clients connect to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Resets all connections that there are.
    pub fn cut_now(&self) {
        lock(&self.state).cut();
    }

    /// Resets all connections once, after `bytes` more bytes of both directions together.
    pub fn cut_after(&self, bytes: u64) {
        lock(&self.state).plan_cuts(vec![bytes]);
    }

    /// Resets all connections `times` times, at seeded distances of up to twice `mean_bytes`.
    pub fn cut_repeatedly(&self, seed: u64, times: usize, mean_bytes: u64) {
        let mut random = Random::new(seed);
        let distance = |_| random.below(mean_bytes.saturating_mul(2)).saturating_add(1);
        lock(&self.state).plan_cuts((0..times).map(distance).collect());
    }

    /// After `bytes` more bytes of both directions together, the connections that there are carry nothing
    /// any more, once; they stay open, as with a peer that hangs or a box between that forgot them.
    pub fn stall_after(&self, bytes: u64) {
        let mut state = lock(&self.state);
        state.stall_at_bytes = Some(state.forwarded_bytes.saturating_add(bytes));
    }

    /// From now on, at seeded distances of up to twice `mean_bytes`, the next `len_bytes` bytes come one at a
    /// time, whatever their direction.
    pub fn trickle(&self, seed: u64, mean_bytes: u64, len_bytes: u64) {
        let (random, alone_bytes) = (Random::new(seed), len_bytes);
        let trickle = Trickle { random, mean_bytes, len_bytes, together_bytes: 0, alone_bytes };
        lock(&self.state).trickle = Some(trickle);
    }

    /// Forwards no more than so many bytes a second from now on, of all connections and directions together.
    /// What is not forwarded yet is left to whoever sends it.
    pub fn carry_at(&self, bytes_per_second: u64) {
        lock(&self.state).bytes_per_second = Some(bytes_per_second);
    }

    /// How many connections were left open that carry nothing.
    #[must_use]
    pub fn stalled(&self) -> u64 {
        lock(&self.state).stalled
    }

    /// Closes new connections at once, as a server that is gone does, or lets them through again.
    pub fn refuse(&self, refuses: bool) {
        lock(&self.state).refuses = refuses;
    }

    /// Sends new connections elsewhere, as after a restart on another port.
    pub fn set_upstream(&self, upstream: SocketAddr) {
        lock(&self.state).upstream = upstream;
    }

    /// How many bytes were forwarded, both directions together.
    #[must_use]
    pub fn forwarded_bytes(&self) -> u64 {
        lock(&self.state).forwarded_bytes
    }

    /// How many bytes were forwarded to the server, and how many from it.
    #[must_use]
    pub fn forwarded_each_way(&self) -> (u64, u64) {
        let state = lock(&self.state);
        let sent_bytes = state.sent_bytes.values().sum();
        (sent_bytes, state.forwarded_bytes.saturating_sub(sent_bytes))
    }

    /// How many bytes were forwarded to the server from that address of a client.
    #[must_use]
    pub fn sent_from(&self, client: IpAddr) -> u64 {
        lock(&self.state).sent_bytes.get(&client).copied().unwrap_or(0)
    }

    /// How many connections were let through.
    #[must_use]
    pub fn connections(&self) -> u64 {
        lock(&self.state).accepted
    }

    /// How many times all connections were reset.
    #[must_use]
    pub fn cuts(&self) -> u64 {
        lock(&self.state).cuts
    }
}

impl Drop for ChaosProxy {
    fn drop(&mut self) {
        {
            let mut state = lock(&self.state);
            state.stopped = true;
            state.cut();
        }
        // Wakes the acceptor; if it cannot be reached it has ended.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

impl State {
    fn cut(&mut self) {
        self.cuts += 1;
        for link in self.links.drain(..) {
            reset(&link.client);
            reset(&link.server);
        }
    }

    /// Takes distances from one cut to the next, the first from now.
    fn plan_cuts(&mut self, mut distances: Vec<u64>) {
        distances.reverse();
        self.later_cuts = distances;
        self.cut_at_bytes = None;
        self.plan_next_cut();
    }

    fn plan_next_cut(&mut self) {
        let distance = self.later_cuts.pop();
        self.cut_at_bytes = distance.map(|bytes| self.forwarded_bytes.saturating_add(bytes));
    }

    /// Counts up to `len` bytes as forwarded, fewer if a cut is due before, and says how many.
    /// `sender` is the client whose upload they are.
    fn allow(&mut self, len: usize, sender: Option<IpAddr>) -> usize {
        let room = self.cut_at_bytes.map_or(u64::MAX, |at| at.saturating_sub(self.forwarded_bytes));
        let allowed = usize::try_from(room).unwrap_or(usize::MAX).min(len);
        self.forwarded_bytes += allowed as u64;
        if let Some(sender) = sender {
            *self.sent_bytes.entry(sender).or_default() += allowed as u64;
        }
        allowed
    }

    /// How long it takes until the line has carried so many bytes more.
    fn carry(&mut self, len: usize) -> Duration {
        let Some(rate) = self.bytes_per_second else { return Duration::ZERO };
        let now = Instant::now();
        self.free_at = self.free_at.max(now) + Duration::from_secs_f64(len as f64 / rate as f64);
        self.free_at - now
    }

    /// How many of so many bytes go next, and how long nothing follows them.
    fn next_piece(&mut self, len: usize) -> (usize, Duration) {
        self.trickle.as_mut().map_or((len, Duration::ZERO), |trickle| trickle.next_piece(len))
    }

    fn stall_if_due(&mut self) {
        if self.stall_at_bytes.is_some_and(|at| self.forwarded_bytes >= at) {
            self.stall_at_bytes = None;
            self.stalled += self.links.len() as u64;
            self.links.iter().for_each(|link| link.stalls.store(true, Ordering::Relaxed));
        }
    }

    fn cut_if_due(&mut self) {
        if self.cut_at_bytes.is_some_and(|at| self.forwarded_bytes >= at) {
            self.cut();
            self.plan_next_cut();
        }
    }
}

impl Trickle {
    fn next_piece(&mut self, len: usize) -> (usize, Duration) {
        if self.together_bytes > 0 {
            let together = self.together_bytes.min(len as u64);
            self.together_bytes -= together;
            return (together as usize, Duration::ZERO);
        }
        self.alone_bytes = self.alone_bytes.saturating_sub(1);
        if self.alone_bytes == 0 {
            self.together_bytes = self.random.below(self.mean_bytes.saturating_mul(2).max(1));
            self.alone_bytes = self.len_bytes;
        }
        (1, ALONE)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Drops the connection with a reset instead of the polite end, for every holder of the socket.
fn reset(stream: &TcpStream) {
    if rustix::net::connect_unspec(stream).is_err() {
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
}

/// Runs until the proxy is dropped, and then waits for its connections' threads.
fn accept_all(listener: &TcpListener, state: &Arc<Mutex<State>>) {
    let mut pumps: Vec<JoinHandle<()>> = Vec::new();
    while let Ok((client, _)) = listener.accept() {
        if lock(state).stopped {
            break;
        }
        // Joined rather than let go: glibc reads a thread that it lets go once more, which may be gone then.
        let ended = pumps.extract_if(.., |pump| pump.is_finished());
        ended.for_each(|pump| drop(pump.join()));
        // A client whose server cannot be reached sees its connection end.
        if let Ok(started) = start_link(client, state) {
            pumps.extend(started);
        }
    }
    for pump in pumps {
        let _ = pump.join();
    }
}

/// Connects one client through, unless connections are refused now.
fn start_link(client: TcpStream, state: &Arc<Mutex<State>>) -> io::Result<Vec<JoinHandle<()>>> {
    let upstream = {
        let state = lock(state);
        if state.refuses {
            return Ok(Vec::new());
        }
        state.upstream
    };
    let server = TcpStream::connect(upstream)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let link = Arc::new(Link { client, server, stalls: AtomicBool::new(false) });
    {
        let mut state = lock(state);
        if state.stopped {
            return Ok(Vec::new());
        }
        state.accepted += 1;
        state.links.push(Arc::clone(&link));
    }
    let pump_of = |is_upload| {
        let (link, state) = (Arc::clone(&link), Arc::clone(state));
        std::thread::spawn(move || pump(&link, is_upload, &state))
    };
    Ok(vec![pump_of(true), pump_of(false)])
}

/// Forwards one direction until it ends; the other may go on.
fn pump(link: &Arc<Link>, is_upload: bool, state: &Mutex<State>) {
    let (mut from, to) = match is_upload {
        true => (&link.client, &link.server),
        false => (&link.server, &link.client),
    };
    let client = link.client.peer_addr().map(|address| address.ip()).ok();
    let sender = client.filter(|_| is_upload);
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let len = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => {
                // A process that was killed resets; so must what stands for it.
                reset(to);
                return forget(link, state);
            }
        };
        if link.stalls.load(Ordering::Relaxed) {
            // What was read is kept from the other side, and nothing more is read.
            return;
        }
        let takes = lock(state).carry(len);
        std::thread::sleep(takes);
        let allowed = lock(state).allow(len, sender);
        let written = write_in_pieces(to, &buffer[..allowed], state);
        {
            let mut state = lock(state);
            state.stall_if_due();
            state.cut_if_due();
        }
        if written.is_err() || allowed < len {
            reset(from);
            reset(to);
            return forget(link, state);
        }
    }
    if to.shutdown(std::net::Shutdown::Write).is_err() {
        forget(link, state);
    }
}

fn write_in_pieces(mut to: &TcpStream, mut bytes: &[u8], state: &Mutex<State>) -> io::Result<()> {
    while !bytes.is_empty() {
        let (len, pause) = lock(state).next_piece(bytes.len());
        let (piece, rest) = bytes.split_at(len);
        to.write_all(piece)?;
        std::thread::sleep(pause);
        bytes = rest;
    }
    Ok(())
}

fn forget(link: &Arc<Link>, state: &Mutex<State>) {
    lock(state).links.retain(|other| !Arc::ptr_eq(other, link));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that sends back what it gets, on every connection.
    fn echo_server() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("bound");
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                std::thread::spawn(move || io::copy(&mut &stream, &mut &stream));
            }
        });
        address
    }

    fn round_trip(stream: &mut TcpStream, content: &[u8]) -> io::Result<Vec<u8>> {
        let mut back = vec![0; content.len()];
        std::thread::scope(|scope| {
            let mut writer = stream.try_clone()?;
            scope.spawn(move || writer.write_all(content));
            stream.read_exact(&mut back)
        })?;
        Ok(back)
    }

    #[test]
    fn everything_goes_through_until_told_otherwise() {
        let proxy = ChaosProxy::start(echo_server()).expect("a free port");
        let content = Random::new(1).bytes(1_000_000);
        let mut stream = TcpStream::connect(proxy.address()).expect("it listens");
        assert_eq!(round_trip(&mut stream, &content).expect("unharmed"), content);
        assert_eq!(proxy.forwarded_bytes(), 2_000_000);
        assert_eq!((proxy.connections(), proxy.cuts()), (1, 0));
        stream.shutdown(std::net::Shutdown::Write).expect("connected");
        assert_eq!(stream.read(&mut [0]).expect("a polite end"), 0);
    }

    #[test]
    fn a_cut_after_some_bytes_forwards_exactly_those() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let proxy = ChaosProxy::start(listener.local_addr().expect("bound")).expect("a free port");
        proxy.cut_after(100_000);
        let mut client = TcpStream::connect(proxy.address()).expect("it listens");
        let (server, _) = listener.accept().expect("it is connected through");
        // The end is told with an error, here or when reading.
        let _ = client.write_all(&[7; 300_000]);
        let error = client.read(&mut [0]).map(|_| ()).and_then(|()| client.write_all(&[0; 9]));
        assert!(error.is_err() || client.write_all(&[0; 9]).is_err());
        drop(server);
        assert_eq!((proxy.forwarded_bytes(), proxy.cuts()), (100_000, 1));
    }

    #[test]
    fn a_cut_resets_all_connections_and_new_ones_go_through() {
        let proxy = ChaosProxy::start(echo_server()).expect("a free port");
        let mut streams: Vec<_> =
            (0..3).map(|_| TcpStream::connect(proxy.address()).expect("it listens")).collect();
        for stream in &mut streams {
            assert_eq!(round_trip(stream, b"hello").expect("unharmed"), b"hello");
        }
        proxy.cut_now();
        for stream in &mut streams {
            let error = stream.read(&mut [0]).expect_err("it was reset");
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        }
        let mut stream = TcpStream::connect(proxy.address()).expect("it listens");
        assert_eq!(round_trip(&mut stream, b"again").expect("unharmed"), b"again");
    }

    #[test]
    fn planned_cuts_come_one_after_another_and_then_no_more() {
        let proxy = ChaosProxy::start(echo_server()).expect("a free port");
        proxy.cut_repeatedly(5, 4, 10_000);
        let mut broken = 0;
        let content = [3; 30_000];
        loop {
            let mut stream = TcpStream::connect(proxy.address()).expect("it listens");
            match round_trip(&mut stream, &content) {
                Ok(back) => {
                    assert_eq!(back, content);
                    break;
                }
                Err(_) => broken += 1,
            }
        }
        // One connection may meet two cuts: what it had in flight the other way counts on.
        assert!(proxy.cuts() == 4 && (1..=4).contains(&broken), "{broken} connections broke");
    }

    #[test]
    fn what_trickles_comes_a_byte_at_a_time_and_is_what_was_sent() {
        let proxy = ChaosProxy::start(echo_server()).expect("a free port");
        proxy.trickle(3, 0, 1);
        let mut stream = TcpStream::connect(proxy.address()).expect("it listens");
        let begun = Instant::now();
        let content = Random::new(2).bytes(500);
        assert_eq!(round_trip(&mut stream, &content).expect("unharmed"), content);
        assert!(begun.elapsed() >= 500 * ALONE, "{:?}", begun.elapsed());

        proxy.trickle(4, 10_000, 5);
        let content = Random::new(2).bytes(1_000_000);
        assert_eq!(round_trip(&mut stream, &content).expect("unharmed"), content);
        assert_eq!(proxy.forwarded_bytes(), 2_001_000);
    }

    #[test]
    fn what_stalls_stays_open_and_carries_nothing_and_new_connections_go_through() {
        let proxy = ChaosProxy::start(echo_server()).expect("a free port");
        let mut stream = TcpStream::connect(proxy.address()).expect("it listens");
        assert_eq!(round_trip(&mut stream, b"hello").expect("unharmed"), b"hello");
        proxy.stall_after(8);
        assert_eq!(round_trip(&mut stream, b"last").expect("unharmed"), b"last");
        stream.write_all(b"more").expect("it is open");
        stream.set_read_timeout(Some(Duration::from_millis(200))).expect("a time");
        let error = stream.read(&mut [0]).expect_err("nothing comes");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        let mut other = TcpStream::connect(proxy.address()).expect("it listens");
        assert_eq!(round_trip(&mut other, b"again").expect("unharmed"), b"again");
        assert_eq!((proxy.stalled(), proxy.cuts()), (1, 0));
    }

    #[test]
    fn a_refused_client_gets_nothing_and_a_moved_server_is_found() {
        let proxy = ChaosProxy::start(echo_server()).expect("a free port");
        proxy.refuse(true);
        let mut stream = TcpStream::connect(proxy.address()).expect("it listens");
        round_trip(&mut stream, b"hello").expect_err("it is closed");
        proxy.refuse(false);
        proxy.set_upstream(echo_server());
        let mut stream = TcpStream::connect(proxy.address()).expect("it listens");
        assert_eq!(round_trip(&mut stream, b"moved").expect("unharmed"), b"moved");
        assert_eq!(proxy.connections(), 1);
    }
}
