//! What is read to its end, since nobody knows before how long it is: files that have content although their size is
//! said to be 0, as those of `/proc` and of some file systems in user space; and pipes.

use std::fs::File;
use std::io::{self, Read};
use std::time::{Duration, Instant};

use holdall_sys::pipe;

use super::content::Bytestream;

/// So much is asked for at once: some files of `/proc` give all that they have to the first read, and nothing after it.
pub(super) const BUFFER_BYTES: usize = 64 << 10;
/// Most bytes of a file that is said to be empty: there are some without end.
const LIMIT_BYTES: u64 = 64 << 20;
/// Longest time that one may take.
const LIMIT_SECONDS: u64 = 5;

/// So often is looked whether the run is to end while nothing comes through a pipe.
const LOOK_UP: Duration = Duration::from_millis(100);

/// A file that is said to be empty.
pub(super) struct Limited<'a> {
    file: &'a File,
    left_bytes: u64,
    until: Instant,
}

impl<'a> Limited<'a> {
    pub(super) fn new(file: &'a File) -> Self {
        let until = Instant::now() + Duration::from_secs(LIMIT_SECONDS);
        Self { file, left_bytes: LIMIT_BYTES, until }
    }
}

impl Read for Limited<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        let over =
            |limit: &str| Err(io::Error::other(format!("it is said to be empty, and {limit}")));
        if read as u64 > self.left_bytes {
            return over("has more than 64 MiB");
        }
        if read > 0 && Instant::now() > self.until {
            return over("was read for 5 s without coming to its end");
        }
        self.left_bytes -= read as u64;
        Ok(read)
    }
}

/// A pipe, which has no limits.
pub(super) struct Pipe<'a> {
    file: &'a File,
    /// Whether the run is to end.
    stops: &'a dyn Fn() -> bool,
}

impl<'a> Pipe<'a> {
    pub(super) fn new(file: &'a File, stops: &'a dyn Fn() -> bool) -> Self {
        Self { file, stops }
    }
}

impl Read for Pipe<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
            if (self.stops)() {
                return Err(io::Error::other("the backup was ended"));
            }
            pipe::wait(self.file, LOOK_UP)?;
        }
    }
}

/// Content of unknown length.
pub(super) struct ToEnd<R> {
    from: R,
    pub(super) read_bytes: u64,
}

impl<R: Read> ToEnd<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, read_bytes: 0 }
    }
}

impl<R: Read> Bytestream for ToEnd<R> {
    fn expected_bytes(&self) -> u64 {
        // As much again: little memory for what is short, and few pieces of what is long.
        self.read_bytes.max(BUFFER_BYTES as u64)
    }

    fn append(&mut self, segment: &mut Vec<u8>, wanted: usize) -> io::Result<bool> {
        let read = (&mut self.from).take(wanted as u64).read_to_end(segment)?;
        self.read_bytes += read as u64;
        Ok(read < wanted)
    }
}
