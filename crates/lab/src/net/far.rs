//! What a measurement needs of the other end: something that carries bytes for a time.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use holdall_meter::Latency;

use super::{End, Wait};

/// Which way bytes go, seen from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the other end.
    Send,
    /// From the other end.
    Receive,
}

/// What one connection is to carry.
#[derive(Debug, Clone)]
pub struct Job {
    /// Which way.
    pub direction: Direction,
    /// For how long the sender sends.
    pub duration: Duration,
    /// Bytes that are written or read at once.
    pub buffer_bytes: u32,
    /// What is at this end.
    pub near: End,
    /// Whether a scratch file is at the other end.
    pub far_file: bool,
    /// What whoever writes to a file waits for.
    pub wait: Wait,
}

/// What one connection carried.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Moved {
    /// Bytes that arrived.
    pub bytes: u64,
    /// From the receiver's first byte to its last, and to what it waited for then.
    pub duration: Duration,
    /// When that ended, by this computer's clock; where the other end received, when it was heard of.
    pub ended: Option<Instant>,
    /// How long the reads or writes of a file at either end took.
    pub latency: Option<Latency>,
    /// Segments that the other end's computer sent again meanwhile, where it tells.
    pub far_retransmits: Option<u64>,
}

/// The other end, as something that connections can be made to.
pub trait Far: Sync {
    /// Makes a connection, from that address of this computer if one is given.
    ///
    /// # Errors
    /// What the system, or the other end, says.
    fn connect(&self, from: Option<std::net::IpAddr>) -> io::Result<Box<dyn Carrier + '_>>;

    /// Bytes that are written and read at once by a job that asks for so many, with a file at this end
    /// or without; `None` where the other end's protocol decides on that, so that all buffers are one.
    fn pieces_bytes(&self, asked_bytes: u32, near_file: bool) -> Option<u32>;
}

/// A connection that was not asked for anything yet.
pub trait Carrier: Send {
    /// This end's address and the other's, where they are known.
    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)>;

    /// Asks for `job`; when this returns, it can begin at once.
    ///
    /// # Errors
    /// What the system says, or why the other end will not.
    fn prepare(&mut self, job: &Job) -> io::Result<()>;

    /// Carries out what was prepared; ends early once `stop` is set.
    ///
    /// # Errors
    /// What the system, or the other end, says.
    fn carry(&mut self, job: &Job, stop: &AtomicBool) -> io::Result<Moved>;

    /// Goes there and back until `stop` is set, `most` is reached or the time is over, with a pause
    /// between two; the time that each took.
    ///
    /// # Errors
    /// What the system, or the other end, says.
    fn round_trips(
        &mut self,
        most: usize,
        within: Duration,
        stop: &AtomicBool,
    ) -> io::Result<Vec<Duration>>;
}
