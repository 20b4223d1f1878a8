//! A paired server as the far end of the lab's measurements.
//!
//! Requests of 1 MiB at first, less where they are written here, and twice as many whenever one takes
//! less than a quarter of a second, so that round trips between them weigh little on any line. Each
//! stream has connections from one local address, whichever others there are.

mod files;

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use holdall_lab::disk::{fill, stamp};
use holdall_lab::net::{Carrier, Direction, End, Far, Job, Moved, NetPlan};
use holdall_protocol::wire::{Frames, MAX_LAB_BYTES, MAX_PUT_BODY_BYTES};
use holdall_protocol::{
    ClientOptions, MachineIdentity, MeasuredServer, RepositoryError, ServerAddress,
};

/// A server lets one machine ask for so many things at once; both ways take two streams each.
const MOST_STREAMS: usize = 4;
const PIECE_BYTES: usize = 1 << 20;
/// A request that takes less is followed by a larger one.
const SHORT: Duration = Duration::from_millis(250);
/// Between two round trips, so that they load nothing themselves.
const BETWEEN_TRIPS: Duration = Duration::from_millis(10);

/// A server lets itself be measured for 5 minutes; connecting, round trips and requests that end late have the
/// rest.
const LONGEST: Duration = Duration::from_secs(270);

/// What a server does not let itself be measured with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BeyondAServer {
    /// More streams than it takes of one machine.
    #[error("a server measures with at most {MOST_STREAMS} streams")]
    Streams,
    /// It takes longer than a server has for it.
    #[error("a server is measured for at most 5 minutes")]
    Time,
}

/// A paired server.
pub struct LabServer {
    server: Arc<MeasuredServer>,
    /// The local addresses, in the order in which the client has them.
    bind: Vec<IpAddr>,
    pieces: Pieces,
}

/// What is sent: bytes that do not compress.
struct Pieces {
    piece: Bytes,
    /// How many were made that are like no other.
    made: AtomicU64,
}

impl Pieces {
    fn new() -> Self {
        let mut piece = vec![0; PIECE_BYTES];
        fill(&mut piece, 0);
        Self { piece: piece.into(), made: AtomicU64::new(0) }
    }

    /// So many bytes, in whole pieces. Where they are written, no piece is like one before: a disk that finds what
    /// it has already would write less than it got.
    fn frames(&self, bytes: usize, are_written: bool) -> Frames {
        let mut frames = Frames::new();
        for _ in 0..bytes / PIECE_BYTES {
            frames.push_plain(if are_written { self.another() } else { self.piece.clone() });
        }
        frames
    }

    fn another(&self) -> Bytes {
        let mut piece = self.piece.to_vec();
        stamp(&mut piece, self.made.fetch_add(1, Ordering::Relaxed));
        piece.into()
    }
}

impl LabServer {
    /// Whether a server lets itself be measured like that.
    ///
    /// # Errors
    /// [`BeyondAServer`].
    pub fn check(plan: &NetPlan) -> Result<(), BeyondAServer> {
        if plan.streams.iter().any(|&streams| streams > MOST_STREAMS) {
            return Err(BeyondAServer::Streams);
        }
        if plan.sends_for() > LONGEST { Err(BeyondAServer::Time) } else { Ok(()) }
    }

    /// Connects to a server as this machine, once, and from the addresses of the plan, whatever `options` say.
    ///
    /// # Errors
    /// [`RepositoryError::Unreachable`], or that it is another server.
    pub fn connect(
        address: &ServerAddress,
        identity: &MachineIdentity,
        plan: &NetPlan,
        options: ClientOptions,
    ) -> Result<Self, RepositoryError> {
        let options =
            ClientOptions { retry_for: Duration::ZERO, bind: plan.bind.clone(), ..options };
        let server = Arc::new(MeasuredServer::connect(address, identity, options)?);
        Ok(Self { server, bind: plan.bind.clone(), pieces: Pieces::new() })
    }

    /// Which server it is, and of which version, for reports.
    pub fn words(&self) -> String {
        // What keeps it from telling shows with the first measurement.
        let version = self.server.version().ok().flatten();
        let version =
            version.map_or_else(|| "version unknown".to_owned(), |it| format!("holdall {it}"));
        format!("https://{}, {version}", self.server.host_reached())
    }

    /// The server itself.
    pub fn measured(&self) -> Arc<MeasuredServer> {
        Arc::clone(&self.server)
    }

    /// Most bytes of a request, in whole pieces; one that is written or read there is at most as long as a put.
    fn most_bytes(job: &Job) -> usize {
        match job.far_file {
            true => MAX_PUT_BODY_BYTES / PIECE_BYTES * PIECE_BYTES,
            false => MAX_LAB_BYTES,
        }
    }
}

impl Far for LabServer {
    fn connect(&self, from: Option<IpAddr>) -> io::Result<Box<dyn Carrier + '_>> {
        let path = from.and_then(|from| self.bind.iter().position(|address| *address == from));
        Ok(Box::new(Requests { far: self, server: self.server.over(path.unwrap_or(0)) }))
    }

    fn pieces_bytes(&self, asked_bytes: u32, near_file: bool) -> Option<u32> {
        near_file.then_some(asked_bytes)
    }
}

/// Requests over those of the client's connections that come from one local address.
struct Requests<'a> {
    far: &'a LabServer,
    server: MeasuredServer,
}

impl Requests<'_> {
    /// Sends so many bytes, which the server forgets, or writes and makes durable before.
    fn send(&self, job: &Job, bytes: usize) -> io::Result<u64> {
        let frames = self.far.pieces.frames(bytes, job.far_file);
        match job.far_file {
            true => self.server.write(&frames).map(drop),
            false => self.server.take(&frames),
        }
        .map_err(in_io)?;
        Ok(bytes as u64)
    }

    /// Asks for so many bytes, which the server has in memory, or reads.
    fn receive(&self, job: &Job, bytes: usize) -> io::Result<u64> {
        match job.far_file {
            true => self.server.read(bytes as u64),
            false => self.server.give(bytes as u64),
        }
        .map_err(in_io)?;
        Ok(bytes as u64)
    }
}

impl Carrier for Requests<'_> {
    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        let peer = self.server.host_reached().to_socket_addrs().ok()?.next()?;
        Some((SocketAddr::new([0, 0, 0, 0].into(), 0), peer))
    }

    fn prepare(&mut self, job: &Job) -> io::Result<()> {
        match job.far_file && job.direction == Direction::Receive {
            // The first request has the file made.
            true => self.server.read(0).map_err(in_io),
            false => Ok(()),
        }
    }

    fn carry(&mut self, job: &Job, stop: &AtomicBool) -> io::Result<Moved> {
        let sizes = (PIECE_BYTES, LabServer::most_bytes(job));
        match (job.direction, &job.near) {
            (Direction::Send, End::Memory) => {
                repeat(job, stop, sizes, |bytes| self.send(job, bytes))
            }
            (Direction::Receive, End::Memory) => {
                repeat(job, stop, sizes, |bytes| self.receive(job, bytes))
            }
            (Direction::Send, End::File(_)) => files::send(&self.server, job, stop),
            (Direction::Receive, End::File(_)) => files::receive(&self.server, job, stop),
        }
    }

    fn round_trips(
        &mut self,
        most: usize,
        within: Duration,
        stop: &AtomicBool,
    ) -> io::Result<Vec<Duration>> {
        let mut trips = Vec::new();
        // The first one may have to connect.
        self.server.give(0).map_err(in_io)?;
        let started = Instant::now();
        let is_over = || started.elapsed() >= within || stop.load(Ordering::Relaxed);
        while trips.len() < most && !is_over() {
            let begun = Instant::now();
            self.server.give(0).map_err(in_io)?;
            trips.push(begun.elapsed());
            std::thread::sleep(BETWEEN_TRIPS);
        }
        Ok(trips)
    }
}

/// Makes requests one after another until the job's time is over, of so many bytes at first and at most;
/// `request` tells how many bytes it carried.
fn repeat(
    job: &Job,
    stop: &AtomicBool,
    (first_bytes, most_bytes): (usize, usize),
    mut request: impl FnMut(usize) -> io::Result<u64>,
) -> io::Result<Moved> {
    let (begun, mut bytes, mut size_bytes) = (Instant::now(), 0, first_bytes);
    while begun.elapsed() < job.duration && !stop.load(Ordering::Relaxed) {
        let asked = Instant::now();
        bytes += request(size_bytes)?;
        if asked.elapsed() < SHORT {
            size_bytes = (size_bytes * 2).min(most_bytes);
        }
    }
    let ended = Instant::now();
    Ok(Moved { bytes, duration: ended - begun, ended: Some(ended), ..Moved::default() })
}

fn in_io(error: RepositoryError) -> io::Error {
    io::Error::other(error)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn what_is_written_there_neither_compresses_nor_repeats() {
        let pieces = Pieces::new();
        let sent = pieces.frames(3 * PIECE_BYTES, true).into_parts();
        let blocks: Vec<_> = sent.iter().flat_map(|piece| piece.chunks(4096)).collect();
        assert_eq!(blocks.iter().collect::<BTreeSet<_>>().len(), 3 * PIECE_BYTES / 4096);
        let zeros = sent[0].iter().filter(|&&byte| byte == 0).count();
        assert!((PIECE_BYTES / 300..PIECE_BYTES / 200).contains(&zeros), "{zeros} bytes are 0");
        assert_eq!(pieces.frames(3 * PIECE_BYTES, false).total_bytes(), 3 * PIECE_BYTES as u64);
    }
}
