//! A paired server as the far end of the lab's measurements.
//!
//! Requests of one million bytes at first, and twice as many whenever one takes less than a quarter
//! of a second, so that round trips between them weigh little on any line.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use holdall_lab::net::{Carrier, Direction, Far, Job, Moved, NetPlan};
use holdall_protocol::wire::{Frames, MAX_LAB_BYTES, MAX_PUT_BODY_BYTES};
use holdall_protocol::{ClientOptions, MachineIdentity, MeasuredServer, RepositoryError};

use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::open;

/// A server lets one machine ask for so many things at once; both ways take two streams each.
const MOST_STREAMS: usize = 4;
const PIECE_BYTES: usize = 1 << 20;
/// A request that takes less is followed by a larger one.
const SHORT: Duration = Duration::from_millis(250);
/// Between two round trips, so that they load nothing themselves.
const BETWEEN_TRIPS: Duration = Duration::from_millis(10);

/// A paired server.
pub(crate) struct FarServer {
    server: Arc<MeasuredServer>,
    piece: Bytes,
}

impl FarServer {
    /// The server that was named, `https://HOST:PORT`, or the paired one.
    ///
    /// # Errors
    /// [`Refusal`] if this machine is paired with none, or for more streams than a server takes;
    /// [`RepositoryError::Unreachable`].
    pub(crate) fn find(app: &App, server: Option<&str>, plan: &NetPlan) -> Result<Self> {
        Self::find_until(app, server, plan, app.interrupt.flag())
    }

    /// The same, with every request and the connecting ended once `interrupt` is set.
    ///
    /// # Errors
    /// As for [`FarServer::find`].
    pub(crate) fn find_until(
        app: &App,
        server: Option<&str>,
        plan: &NetPlan,
        interrupt: Arc<AtomicBool>,
    ) -> Result<Self> {
        if plan.streams.iter().any(|&streams| streams > MOST_STREAMS) {
            let why = format!("a server measures with at most {MOST_STREAMS} streams");
            return Err(Refusal::new(Exit::Usage, why).into());
        }
        let (address, signing) = open::paired_server(app, server)?;
        let identity = MachineIdentity::from_seed(signing.seed())?;
        let options = ClientOptions {
            retry_for: Duration::ZERO,
            interrupt,
            bind: plan.bind.clone(),
            ..ClientOptions::default()
        };
        let server = MeasuredServer::connect(&address, &identity, options)?;
        let server = Arc::new(server);
        Ok(Self { server, piece: Bytes::from(vec![0x5a; PIECE_BYTES]) })
    }

    /// The server itself.
    pub(crate) fn measured(&self) -> Arc<MeasuredServer> {
        Arc::clone(&self.server)
    }

    /// Most bytes of a request, in whole pieces; one that is written is at most as long as a put.
    fn most_bytes(job: &Job) -> usize {
        match job.far_file {
            true => MAX_PUT_BODY_BYTES / PIECE_BYTES * PIECE_BYTES,
            false => MAX_LAB_BYTES,
        }
    }

    /// Sends so many bytes, which the server forgets, or writes and makes durable before.
    fn send(&self, job: &Job, bytes: usize) -> Result<(), RepositoryError> {
        let frames = self.frames(bytes);
        match job.far_file {
            true => self.server.write(&frames).map(drop),
            false => self.server.take(&frames),
        }
    }

    fn frames(&self, bytes: usize) -> Frames {
        let mut frames = Frames::new();
        (0..bytes / PIECE_BYTES).for_each(|_| frames.push_plain(self.piece.clone()));
        frames
    }
}

impl Far for FarServer {
    fn connect(&self, _from: Option<IpAddr>) -> io::Result<Box<dyn Carrier + '_>> {
        // The client makes its connections, from its addresses in turn.
        Ok(Box::new(Requests { far: self }))
    }

    fn buffer_bytes(&self, _job: &Job) -> Option<u32> {
        None
    }
}

/// Requests over one of the client's connections.
struct Requests<'a> {
    far: &'a FarServer,
}

impl Carrier for Requests<'_> {
    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        let peer = self.far.server.host_reached().to_socket_addrs().ok()?.next()?;
        Some((SocketAddr::new([0, 0, 0, 0].into(), 0), peer))
    }

    fn prepare(&mut self, _job: &Job) -> io::Result<()> {
        Ok(())
    }

    fn carry(&mut self, job: &Job, stop: &AtomicBool) -> io::Result<Moved> {
        let (begun, mut bytes, mut size) = (Instant::now(), 0, PIECE_BYTES);
        while begun.elapsed() < job.duration && !stop.load(Ordering::Relaxed) {
            let asked = Instant::now();
            match job.direction {
                Direction::Send => self.far.send(job, size),
                Direction::Receive => self.far.server.give(size as u64),
            }
            .map_err(in_io)?;
            bytes += size as u64;
            if asked.elapsed() < SHORT {
                size = (size * 2).min(FarServer::most_bytes(job));
            }
        }
        Ok(Moved { bytes, duration: begun.elapsed(), ..Moved::default() })
    }

    fn round_trips(
        &mut self,
        most: usize,
        within: Duration,
        stop: &AtomicBool,
    ) -> io::Result<Vec<Duration>> {
        let mut trips = Vec::new();
        // The first one may have to connect.
        self.far.server.give(0).map_err(in_io)?;
        let started = Instant::now();
        let is_over = || started.elapsed() >= within || stop.load(Ordering::Relaxed);
        while trips.len() < most && !is_over() {
            let begun = Instant::now();
            self.far.server.give(0).map_err(in_io)?;
            trips.push(begun.elapsed());
            std::thread::sleep(BETWEEN_TRIPS);
        }
        Ok(trips)
    }
}

fn in_io(error: RepositoryError) -> io::Error {
    io::Error::other(error)
}

/// An error of a measurement; one of a server's says itself what it is.
pub(crate) fn out_of_io(error: io::Error) -> anyhow::Error {
    match error.downcast::<RepositoryError>() {
        Ok(error) => error.into(),
        Err(error) => error.into(),
    }
}
