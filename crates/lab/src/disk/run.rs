//! Doing one row: all its jobs at once, each request timed.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Instant;
use std::{io, thread};

use holdall_meter::LatencyCount;
use holdall_sys::aligned::AlignedBuffer;
use holdall_sys::process;
use holdall_sys::ring::{Ring, Way};

use super::content;
use super::files::{DiskFiles, Opened};
use super::measured::{Engine, Measured};
use super::order::Order;
use super::row::Row;
use crate::cache::Cache;
use crate::storage_stack::DirectAccess;
use crate::{LabError, Stop};

/// Does a row, and says what it gave.
///
/// # Errors
/// [`LabError::Settings`] for a row that makes no sense, [`LabError::NoRoom`],
/// [`LabError::Interrupted`], and what the system says.
pub fn measure(row: &Row, files: &mut DiskFiles<'_>) -> Result<Measured, LabError> {
    row.check()?;
    files.check_direct(row)?;
    files.stop().check()?;
    let opened = files.open(row)?;
    let refused = row.direct && !opened.direct;
    let taken = opened.direct && files.direct_access() != DirectAccess::Around;
    // A write through a cache measures memory unless it is made durable.
    let end_fsync = row.end_fsync || (row.access.writes() && (refused || taken));
    let done = Row { direct: opened.direct, end_fsync, ..row.clone() };
    let measured = measure_opened(&done, &opened, files);
    let closed = files.close(opened, row);
    let direct_in_doubt = taken.then(|| files.direct_access());
    let measured = Measured { direct_refused: refused, direct_in_doubt, ..measured? };
    closed?;
    files.stop().check()?;
    Ok(measured)
}

fn measure_opened(row: &Row, opened: &Opened, files: &DiskFiles<'_>) -> Result<Measured, LabError> {
    let place = files.path("");
    let failed = |error| LabError::io(&format!("a {} in", row.access.words()), &place, error);
    let (workers, engine) = workers(row, opened, files.seed()).map_err(failed)?;
    let read_before = process::bytes_read_from_disks();
    let tallies = run_all(workers, row, files.stop()).map_err(failed)?;
    let mut total = Tally::default();
    let starts = tallies.iter().map(|tally| tally.started).min().flatten();
    let ends = tallies.iter().filter_map(|tally| tally.ended).max();
    tallies.iter().for_each(|tally| total.add(tally));
    let bytes = total.operations * row.block_bytes;
    let cache = match (row.access.writes(), row.direct) {
        (true, _) => None,
        (false, true) => Some(Cache::of_direct_read(files.direct_access())),
        (false, false) => Some(Cache::of_read_in(&place, bytes, read_before)),
    };
    Ok(Measured {
        row: row.clone(),
        direct_refused: false,
        direct_in_doubt: None,
        engine,
        cache,
        operations: total.operations,
        bytes,
        duration: starts.zip(ends).map(|(start, end)| end - start).unwrap_or_default(),
        latency: total.latency.latency(),
    })
}

/// What the workers of one job share.
struct Job {
    order: Order,
    file: File,
    /// How many of them are at work: the last makes it durable.
    at_work: AtomicUsize,
}

/// One thread's part of a job.
struct Worker {
    job: Arc<Job>,
    mover: Mover,
}

/// How a worker moves bytes.
enum Mover {
    Calls(AlignedBuffer),
    Ring(Box<Ring>),
}

/// What a worker did.
#[derive(Default)]
struct Tally {
    operations: u64,
    latency: LatencyCount,
    started: Option<Instant>,
    ended: Option<Instant>,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.latency.merge(&other.latency);
    }
}

/// The workers of all jobs, with filled buffers.
fn workers(row: &Row, opened: &Opened, seed: u64) -> io::Result<(Vec<Worker>, Engine)> {
    let depth = row.queue_depth as usize;
    let block = usize::try_from(row.block_bytes).map_err(io::Error::other)?;
    let ring = |file: &File| Ring::new(file.try_clone()?, depth, block);
    // Where there is no ring, or none of that size is allowed, threads do.
    let rings = if depth == 1 {
        Vec::new()
    } else {
        opened.files.iter().map(ring).collect::<io::Result<Vec<_>>>().unwrap_or_default()
    };
    let engine = match (depth, rings.is_empty()) {
        (1, _) => Engine::Calls,
        (_, true) => Engine::Threads,
        (_, false) => Engine::IoUring,
    };
    let mut rings = rings.into_iter();
    let mut workers = Vec::new();
    for (number, file) in opened.files.iter().enumerate() {
        let shuffled = row.access.is_random().then_some(seed ^ (number as u64) << 32);
        let order = Order::new(row.blocks(), shuffled, row.until.repeats());
        let movers = match rings.next() {
            Some(ring) => vec![Mover::Ring(Box::new(ring))],
            None => (0..depth).map(|_| Mover::Calls(AlignedBuffer::new(block))).collect(),
        };
        let at_work = AtomicUsize::new(movers.len());
        let job = Arc::new(Job { order, file: file.try_clone()?, at_work });
        for mut mover in movers {
            mover.fill(seed ^ workers.len() as u64);
            workers.push(Worker { job: Arc::clone(&job), mover });
        }
    }
    Ok((workers, engine))
}

impl Mover {
    fn fill(&mut self, seed: u64) {
        match self {
            Self::Calls(buffer) => content::fill(buffer.bytes_mut(), seed),
            Self::Ring(ring) => {
                let mut slot = 0;
                while let Some(buffer) = ring.buffer(slot) {
                    content::fill(buffer, seed ^ (slot as u64) << 16);
                    slot += 1;
                }
            }
        }
    }
}

/// Lets all workers begin at once, and waits for them.
fn run_all(workers: Vec<Worker>, row: &Row, stop: &Stop) -> io::Result<Vec<Tally>> {
    let barrier = Barrier::new(workers.len());
    thread::scope(|scope| {
        let start = |worker: Worker| {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                worker.run(row, stop)
            })
        };
        let started: Vec<_> = workers.into_iter().map(start).collect();
        let ended = started.into_iter().map(|worker| worker.join());
        ended
            .map(|tally| tally.unwrap_or_else(|_| Err(io::Error::other("a worker failed"))))
            .collect()
    })
}

impl Worker {
    fn run(self, row: &Row, stop: &Stop) -> io::Result<Tally> {
        let started = Instant::now();
        let mut tally = Tally { started: Some(started), ..Tally::default() };
        let deadline = row.until.limit().map(|limit| started + limit);
        let is_over = |now: Instant| stop.is_wished() || deadline.is_some_and(|end| now >= end);
        let next = || if is_over(Instant::now()) { None } else { self.job.order.next() };
        let moved = match self.mover {
            Mover::Calls(buffer) => one_by_one(&self.job.file, buffer, row, next, &mut tally),
            Mover::Ring(ring) => side_by_side(*ring, row, next, &mut tally),
        };
        let is_last = self.job.at_work.fetch_sub(1, Ordering::AcqRel) == 1;
        moved?;
        if row.end_fsync && is_last {
            self.job.file.sync_all()?;
        }
        tally.ended = Some(Instant::now());
        Ok(tally)
    }
}

/// Moves one block after the other.
fn one_by_one(
    file: &File,
    mut buffer: AlignedBuffer,
    row: &Row,
    next: impl Fn() -> Option<u64>,
    tally: &mut Tally,
) -> io::Result<()> {
    while let Some(block) = next() {
        let offset = block * row.block_bytes;
        if row.access.writes() {
            content::stamp(buffer.bytes_mut(), tally.operations);
        }
        let begun = Instant::now();
        match row.access.writes() {
            true => file.write_all_at(buffer.bytes(), offset)?,
            false => file.read_exact_at(buffer.bytes_mut(), offset)?,
        }
        tally.latency.add(begun.elapsed());
        tally.operations += 1;
    }
    Ok(())
}

/// Keeps as many blocks under way as the ring has slots.
fn side_by_side(
    mut ring: Ring,
    row: &Row,
    next: impl Fn() -> Option<u64>,
    tally: &mut Tally,
) -> io::Result<()> {
    let way = if row.access.writes() { Way::Write } else { Way::Read };
    let mut begun = vec![Instant::now(); row.queue_depth as usize];
    let mut started = 0;
    let mut start = |ring: &mut Ring, slot: usize, begun: &mut [Instant]| {
        let Some(block) = next() else { return Ok(()) };
        if let Some(buffer) = ring.buffer(slot).filter(|_| row.access.writes()) {
            content::stamp(buffer, started);
        }
        started += 1;
        begun[slot] = Instant::now();
        ring.start(slot, way, block * row.block_bytes)
    };
    for slot in 0..begun.len() {
        start(&mut ring, slot, &mut begun)?;
    }
    while ring.under_way() > 0 {
        ring.wait()?;
        while let Some(done) = ring.completion() {
            if done.moved_bytes? as u64 != row.block_bytes {
                return Err(io::Error::other("a request moved fewer bytes than requested"));
            }
            tally.latency.add(begun[done.slot].elapsed());
            tally.operations += 1;
            start(&mut ring, done.slot, &mut begun)?;
        }
    }
    Ok(())
}
