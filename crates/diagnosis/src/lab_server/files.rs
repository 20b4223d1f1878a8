//! A file at this end of what is measured with a paired server, which needs no more of the server than
//! memory does.
//!
//! A request's body has to be there before it is sent. So the file is read ahead meanwhile, as a backup
//! reads ahead, and the slower of both is what shows. What is received is written as it comes. No row
//! has a file at both ends.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Instant;

use bytes::Bytes;
use holdall_lab::net::{Job, Moved, Sink, Source};
use holdall_meter::Latency;
use holdall_protocol::MeasuredServer;
use holdall_protocol::wire::Frames;
use holdall_sys::thread;

use super::{PIECE_BYTES, in_io, repeat};

/// Longest request, and as much is read ahead, in each stream: it is all in memory.
const MOST_BYTES: usize = 16 << 20;
/// The first request for bytes that are written, each write of which may take long.
const FIRST_WRITTEN_BYTES: usize = 64 << 10;

/// Sends what the job's file has.
///
/// # Errors
/// What the file or the server says.
pub(super) fn send(server: &MeasuredServer, job: &Job, stop: &AtomicBool) -> io::Result<Moved> {
    let source = Source::new(&job.near, job.buffer_bytes);
    let ahead = MOST_BYTES / PIECE_BYTES.max(job.buffer_bytes as usize);
    let (moved, read) = std::thread::scope(|scope| {
        let (ready, pieces) = sync_channel(ahead);
        let reading = thread::start(scope, move || read_ahead(source, &ready));
        let moved = send_pieces(server, job, pieces, stop);
        let failed = |_| Err(io::Error::other("the thread that reads the file failed"));
        (moved, reading.and_then(|reading| reading.join().unwrap_or_else(failed)))
    });
    // Where nothing came any more, who reads says why.
    let latency = read?;
    Ok(Moved { latency, ..moved? })
}

/// Reads until nobody takes it any more; how long the reads took.
fn read_ahead(mut source: Source, ready: &SyncSender<Bytes>) -> io::Result<Option<Latency>> {
    loop {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        while piece.len() < PIECE_BYTES {
            piece.extend_from_slice(source.next_piece().map_err(of_file)?);
        }
        if ready.send(piece.into()).is_err() {
            return Ok(source.latency());
        }
    }
}

/// Sends what was read; ends the reading when it is done.
fn send_pieces(
    server: &MeasuredServer,
    job: &Job,
    pieces: Receiver<Bytes>,
    stop: &AtomicBool,
) -> io::Result<Moved> {
    let moved = repeat(job, stop, (PIECE_BYTES, MOST_BYTES), |bytes| {
        let mut frames = Frames::new();
        while frames.total_bytes() < bytes as u64 {
            if stop.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let ended = |_| io::Error::other("the file is not read any more");
            frames.push_plain(pieces.recv().map_err(ended)?);
        }
        server.take(&frames).map_err(in_io)?;
        Ok(frames.total_bytes())
    });
    // Who waits to hand over the next piece hears of it.
    drop(pieces);
    moved
}

/// Receives what is written to the job's file.
///
/// # Errors
/// What the file or the server says.
pub(super) fn receive(server: &MeasuredServer, job: &Job, stop: &AtomicBool) -> io::Result<Moved> {
    let begun = Instant::now();
    let mut written = Written::new(Sink::new(&job.near, job.wait), job.buffer_bytes as usize);
    let first_bytes = FIRST_WRITTEN_BYTES.max(job.buffer_bytes as usize);
    let moved = repeat(job, stop, (first_bytes, MOST_BYTES), |bytes| {
        server.give_to(bytes as u64, |piece| written.take(piece)).map_err(in_io)?;
        written.check()?;
        Ok(bytes as u64)
    })?;
    let latency = written.finish()?;
    let ended = Instant::now();
    Ok(Moved { latency, duration: ended - begun, ended: Some(ended), ..moved })
}

/// Writes what comes, however it comes, in pieces of one length.
struct Written {
    sink: Sink,
    piece: Vec<u8>,
    piece_bytes: usize,
    /// The first thing that went wrong; nothing is written after it.
    failed: Option<io::Error>,
}

impl Written {
    fn new(sink: Sink, piece_bytes: usize) -> Self {
        Self { sink, piece: Vec::with_capacity(piece_bytes), piece_bytes, failed: None }
    }

    fn take(&mut self, mut come: &[u8]) {
        while !come.is_empty() && self.failed.is_none() {
            let room_bytes = self.piece_bytes - self.piece.len();
            let (now, later) = come.split_at(room_bytes.min(come.len()));
            self.piece.extend_from_slice(now);
            come = later;
            if self.piece.len() == self.piece_bytes {
                self.write();
            }
        }
    }

    fn write(&mut self) {
        self.failed = self.sink.take(&self.piece).err();
        self.piece.clear();
    }

    fn check(&mut self) -> io::Result<()> {
        self.failed.take().map_or(Ok(()), |error| Err(of_file(error)))
    }

    /// Writes the rest, and waits for what is to be waited for at the end; how long the writes took.
    fn finish(mut self) -> io::Result<Option<Latency>> {
        if !self.piece.is_empty() {
            self.write();
        }
        self.check()?;
        self.sink.finish().map_err(of_file)?;
        Ok(self.sink.latency())
    }
}

/// What went wrong with a file here, which is not to be taken for the connection's end.
fn of_file(error: io::Error) -> io::Error {
    io::Error::other(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdall_lab::net::{End, ScratchFolder, Wait};

    #[test]
    fn what_comes_is_written_whole_in_pieces_of_the_buffers_length() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = ScratchFolder::new(folder.path(), 16 << 20).unwrap();
        let end = End::File(scratch.file(4).unwrap());
        let mut written = Written::new(Sink::new(&end, Wait::AtEnd), 4);
        let left = [&b"abc"[..], b"", b"defghij"].map(|come| {
            written.take(come);
            written.piece.len()
        });
        assert_eq!(left, [3, 3, 2]);
        assert!(written.finish().unwrap().is_some());
        assert_eq!(Source::new(&end, 1024).next_piece().unwrap(), b"abcdefghij");
    }

    #[test]
    fn a_file_is_read_ahead_from_its_beginning_until_nobody_takes_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("source");
        let content: Vec<u8> = (0..PIECE_BYTES * 3 / 2).map(|at| (at % 251) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let file = holdall_lab::net::ScratchFile::existing(&path).unwrap();
        let source = Source::new(&End::File(file), 4096);
        let (ready, pieces) = sync_channel(1);
        std::thread::scope(|scope| {
            let reading = scope.spawn(move || read_ahead(source, &ready));
            let read = [pieces.recv().unwrap(), pieces.recv().unwrap()].concat();
            drop(pieces);
            assert_eq!(read, [&content[..], &content[..PIECE_BYTES / 2]].concat());
            assert!(reading.join().unwrap().unwrap().is_some());
        });
    }
}
