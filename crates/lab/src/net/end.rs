//! What is at an end of the bytes: memory, or a file that is read or written.
//!
//! What is written goes to a file without a name, so that nothing is left of it, whatever ends the
//! process.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use rustix::fs::Advice;

use super::samples::Samples;

/// What a writer waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wait {
    /// Nothing: the page cache is enough.
    Never,
    /// One fsync at the end.
    AtEnd,
    /// Every write until it is durable.
    #[default]
    EachWrite,
}

/// A scratch file of bounded length, which has no name and goes with its last user.
#[derive(Debug, Clone)]
pub struct ScratchFile {
    file: Arc<File>,
    limit_bytes: u64,
}

/// At most this part of the free room is taken.
const PART_OF_FREE: u64 = 4;
/// Less room than this is too little to measure.
const LEAST_BYTES: u64 = 16 << 20;
const FILL_BYTES: usize = 1 << 20;

impl ScratchFile {
    /// An empty one in `folder`, to be written: at most `limit_bytes`, and at most a quarter of
    /// what is free there; then it is written again from its beginning.
    ///
    /// # Errors
    /// [`io::ErrorKind::StorageFull`] where too little is free, or what the system says.
    pub fn empty(folder: &Path, limit_bytes: u64) -> io::Result<Self> {
        let free = holdall_sys::disk::free_bytes(folder)?;
        let limit_bytes = limit_bytes.min(free / PART_OF_FREE);
        if limit_bytes < LEAST_BYTES {
            let what = format!("{} has only {free} bytes free", folder.display());
            return Err(io::Error::new(io::ErrorKind::StorageFull, what));
        }
        Ok(Self { file: Arc::new(tempfile::tempfile_in(folder)?), limit_bytes })
    }

    /// One in `folder` that has content to be read, as much as [`Self::empty`] may have.
    ///
    /// # Errors
    /// As [`Self::empty`].
    pub fn filled(folder: &Path, limit_bytes: u64) -> io::Result<Self> {
        let scratch = Self::empty(folder, limit_bytes)?;
        let piece = noise(FILL_BYTES);
        let mut at = 0;
        while at < scratch.limit_bytes {
            let rest = usize::try_from(scratch.limit_bytes - at).unwrap_or(FILL_BYTES);
            scratch.file.write_all_at(&piece[..rest.min(FILL_BYTES)], at)?;
            at += FILL_BYTES as u64;
        }
        scratch.file.sync_data()?;
        Ok(scratch)
    }

    /// A file that is there, to be read; it is never written.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if it is empty or no file, or what the system says.
    pub fn existing(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let found = file.metadata()?;
        if !found.is_file() || found.len() == 0 {
            let what = format!("{} is no file with content", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        Ok(Self { file: Arc::new(file), limit_bytes: found.len() })
    }

    /// Lets the page cache forget it, as far as the system does what it is asked to.
    fn forget_cached(&self) {
        // It is advice: a file system that does not take it makes the figures those of its cache.
        let _ = rustix::fs::fadvise(&*self.file, 0, None, Advice::DontNeed);
    }
}

/// One end of the bytes of one stream.
#[derive(Debug, Clone)]
pub enum End {
    /// Bytes that cost nothing to make, or are forgotten.
    Memory,
    /// A file that is read, over and over, or written.
    File(ScratchFile),
}

/// Where the bytes of one stream come from.
pub(super) struct Source {
    end: End,
    at: u64,
    buffer: Vec<u8>,
    /// How long each read took.
    pub(super) reads: Samples,
}

impl Source {
    pub(super) fn new(end: &End, buffer_bytes: u32) -> Self {
        if let End::File(file) = end {
            file.forget_cached();
        }
        let buffer = noise(buffer_bytes as usize);
        Self { end: end.clone(), at: 0, buffer, reads: Samples::default() }
    }

    /// The next piece, at most as long as the buffer; never empty.
    pub(super) fn next(&mut self) -> io::Result<&[u8]> {
        let End::File(file) = &self.end else { return Ok(&self.buffer) };
        let begun = Instant::now();
        let rest = file.limit_bytes.saturating_sub(self.at);
        let want = self.buffer.len().min(usize::try_from(rest).unwrap_or(usize::MAX));
        let length = match file.file.read_at(&mut self.buffer[..want], self.at)? {
            // At its end, or it was cut short meanwhile: once more from the beginning.
            0 => {
                self.at = 0;
                file.file.read_at(&mut self.buffer, 0)?
            }
            length => length,
        };
        if length == 0 {
            // No `UnexpectedEof`: that is a connection's.
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is empty now"));
        }
        self.reads.add(begun.elapsed());
        self.at += length as u64;
        Ok(&self.buffer[..length])
    }
}

/// Where the bytes of one stream go.
pub(super) struct Sink {
    end: End,
    wait: Wait,
    at: u64,
    /// How long each write took, with what it waited for.
    pub(super) writes: Samples,
}

impl Sink {
    pub(super) fn new(end: &End, wait: Wait) -> Self {
        Self { end: end.clone(), wait, at: 0, writes: Samples::default() }
    }

    /// Takes a piece.
    pub(super) fn take(&mut self, piece: &[u8]) -> io::Result<()> {
        let End::File(file) = &self.end else { return Ok(()) };
        let begun = Instant::now();
        if self.at + piece.len() as u64 > file.limit_bytes {
            self.at = 0;
        }
        file.file.write_all_at(piece, self.at)?;
        if self.wait == Wait::EachWrite {
            file.file.sync_data()?;
        }
        self.writes.add(begun.elapsed());
        self.at += piece.len() as u64;
        Ok(())
    }

    /// Waits for what it is to wait for at the end.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        match (&self.end, self.wait) {
            (End::File(file), Wait::AtEnd) => file.file.sync_all(),
            _ => Ok(()),
        }
    }
}

/// Bytes that no compression makes smaller (xorshift64*; nothing depends on its quality).
pub(super) fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    };
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&next().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sink_writes_from_the_beginning_again_once_its_file_is_full() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = ScratchFile::empty(folder.path(), LEAST_BYTES).unwrap();
        file.limit_bytes = 10;
        let mut sink = Sink::new(&End::File(file.clone()), Wait::EachWrite);
        for piece in [b"aaaa", b"bbbb", b"cccc"] {
            sink.take(piece).unwrap();
        }
        assert_eq!((file.file.metadata().unwrap().len(), sink.writes.len()), (8, 3));
        let mut source = Source::new(&End::File(file), 1024);
        assert_eq!(source.next().unwrap(), b"ccccbbbb");
        assert_eq!(source.next().unwrap(), b"ccccbbbb");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "it has a name");
    }

    #[test]
    fn a_filled_file_is_as_long_as_it_may_be_and_an_empty_one_is_no_source() {
        let folder = tempfile::tempdir().unwrap();
        let file = ScratchFile::filled(folder.path(), LEAST_BYTES + 5).unwrap();
        assert_eq!(file.file.metadata().unwrap().len(), LEAST_BYTES + 5);
        let empty = folder.path().join("empty");
        std::fs::write(&empty, "").unwrap();
        for no_source in [&empty, folder.path()] {
            let error = ScratchFile::existing(no_source).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
        let error = ScratchFile::empty(folder.path(), 1000).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
