//! Moving bytes between a socket and an end, for a time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::end::{Sink, Source};
use super::message::RESULT_BYTES;

/// A peer that says and takes nothing for so long is gone.
pub(super) const SILENCE: Duration = Duration::from_secs(10);
/// What was sent in time has so long to arrive: more than 1 MB over a line of 1 Mb/s.
const DRAIN: Duration = Duration::from_secs(30);

/// Sends for `duration`; returns the bytes handed over.
///
/// # Errors
/// What the system says; `TimedOut` if the peer takes nothing for 10 seconds.
pub(super) fn give(
    stream: &mut TcpStream,
    source: &mut Source,
    duration: Duration,
    stop: &AtomicBool,
) -> io::Result<u64> {
    stream.set_write_timeout(Some(SILENCE))?;
    let begun = Instant::now();
    let mut sent_bytes = 0;
    while begun.elapsed() < duration && !stop.load(Ordering::Relaxed) {
        let piece = source.next_piece().map_err(of_file)?;
        stream.write_all(piece).map_err(timed_out)?;
        sent_bytes += piece.len() as u64;
    }
    Ok(sent_bytes)
}

/// What was taken from a socket.
pub(super) struct Taken {
    /// How many bytes arrived, the last ones with them.
    pub(super) bytes: u64,
    /// When the first of them came; when it ended, without any.
    pub(super) begun: Instant,
    /// From then until all of them are where they belong.
    pub(super) duration: Duration,
    /// The last bytes, if there were so many.
    pub(super) last: Option<[u8; RESULT_BYTES]>,
}

/// Takes all that comes until the peer has ended, for at most `duration` and what it needs to
/// arrive.
///
/// # Errors
/// What the system says; `TimedOut` if nothing comes for 10 seconds, or it does not end.
pub(super) fn take(
    stream: &mut TcpStream,
    sink: &mut Sink,
    buffer_bytes: u32,
    duration: Duration,
    stop: &AtomicBool,
) -> io::Result<Taken> {
    stream.set_read_timeout(Some(SILENCE))?;
    let mut buffer = vec![0; buffer_bytes as usize];
    let (mut bytes, mut tail, mut begun) = (0, Vec::with_capacity(2 * RESULT_BYTES), None);
    // A whole buffer at a time, as it is written to a file.
    while let Some((length, came)) = fill(stream, &mut buffer)? {
        let begun = begun.get_or_insert(came);
        sink.take(&buffer[..length]).map_err(of_file)?;
        bytes += length as u64;
        keep_last(&mut tail, &buffer[..length]);
        if begun.elapsed() > duration + DRAIN {
            return Err(io::Error::new(ErrorKind::TimedOut, "the other end does not end"));
        }
        if stop.load(Ordering::Relaxed) {
            return Err(ErrorKind::Interrupted.into());
        }
    }
    sink.finish().map_err(of_file)?;
    let begun = begun.unwrap_or_else(Instant::now);
    Ok(Taken { bytes, begun, duration: begun.elapsed(), last: tail.as_slice().try_into().ok() })
}

/// What went wrong with a file at this end, which is not to be taken for the connection's end, even where
/// the file lies on a share whose connection ended.
fn of_file(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::Interrupted => error,
        _ => io::Error::other(error),
    }
}

/// Reads until the buffer is full or the peer has ended: how many bytes, and when the first of them came.
fn fill(stream: &mut impl Read, buffer: &mut [u8]) -> io::Result<Option<(usize, Instant)>> {
    let (mut length, mut came) = (0, None);
    while length < buffer.len() {
        match stream.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(more) => {
                came.get_or_insert_with(Instant::now);
                length += more;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(timed_out(error)),
        }
    }
    Ok(came.map(|came| (length, came)))
}

fn keep_last(tail: &mut Vec<u8>, piece: &[u8]) {
    tail.extend_from_slice(&piece[piece.len().saturating_sub(RESULT_BYTES)..]);
    tail.drain(..tail.len().saturating_sub(RESULT_BYTES));
}

/// Reads exactly so many bytes, all of them before `deadline`, however slowly they trickle in.
///
/// # Errors
/// What the system says; `TimedOut`, or `UnexpectedEof` if the peer ended before.
pub(super) fn read_by(
    stream: &mut TcpStream,
    buffer: &mut [u8],
    deadline: Instant,
) -> io::Result<()> {
    let mut length = 0;
    while length < buffer.len() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(silent());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer[length..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(more) => length += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(timed_out(error)),
        }
    }
    Ok(())
}

/// A socket's time limit shows as `WouldBlock`.
fn timed_out(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::WouldBlock { silent() } else { error }
}

fn silent() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "the other end is silent")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a byte at a time, each but the first after 20 ms.
    struct Trickle(u8);

    impl Read for Trickle {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Ok(0);
            }
            if self.0 < 4 {
                std::thread::sleep(Duration::from_millis(20));
            }
            self.0 -= 1;
            buffer[0] = self.0;
            Ok(1)
        }
    }

    #[test]
    fn the_time_of_a_buffer_is_that_of_its_first_byte_and_not_of_its_last() {
        let mut trickle = Trickle(4);
        let (length, came) = fill(&mut trickle, &mut [0; 4]).unwrap().unwrap();
        assert_eq!(length, 4);
        assert!(came.elapsed() >= Duration::from_millis(60), "{:?}", came.elapsed());
        assert!(fill(&mut trickle, &mut [0; 4]).unwrap().is_none());
    }

    #[test]
    fn the_last_bytes_are_kept_however_they_come() {
        let all: Vec<u8> = (0..200).collect();
        for size in [1, 7, 63, 64, 65, 200] {
            let mut tail = Vec::new();
            all.chunks(size).for_each(|piece| keep_last(&mut tail, piece));
            assert_eq!(tail, all[136..], "in pieces of {size}");
        }
    }
}
