//! What is at an end of the bytes: memory, or a file that is read or written.
//!
//! What is written goes to a file without a name, so that nothing is left of it, whatever ends the
//! process. Each stream that writes has a file of its own: two that wrote to one would wait for each
//! other's writes. All files in a folder share its room, however many streams there are.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use holdall_meter::Latency;
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

/// At most this part of the free room is taken.
const PART_OF_FREE: u64 = 4;
/// Less room than this is too little to measure.
const LEAST_BYTES: u64 = 16 << 20;
/// A file that may not grow to this is too short to be one of several.
const LEAST_SHARE_BYTES: u64 = 1 << 20;
const FILL_BYTES: usize = 1 << 20;

/// A folder for scratch files, which share its room: all that were made before one of them was written take
/// at most what one alone may take.
#[derive(Debug, Clone)]
pub struct ScratchFolder {
    path: PathBuf,
    most_bytes: u64,
    room: Arc<Mutex<Room>>,
}

/// What the files of a folder may take.
#[derive(Debug, Default)]
struct Room {
    files: u64,
    /// Of all of them together, as it was found when there was none.
    bytes: u64,
}

/// The part of the room that one file has, until it is gone.
#[derive(Debug)]
struct Share(Arc<Mutex<Room>>);

impl Share {
    fn new(room: &Arc<Mutex<Room>>, bytes_if_first: u64) -> Self {
        let share = Self(Arc::clone(room));
        let mut room = share.room();
        if room.files == 0 {
            room.bytes = bytes_if_first;
        }
        room.files += 1;
        drop(room);
        share
    }

    fn bytes(&self) -> u64 {
        let room = self.room();
        room.bytes / room.files.max(1)
    }

    fn room(&self) -> MutexGuard<'_, Room> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut room = self.room();
        room.files = room.files.saturating_sub(1);
    }
}

impl ScratchFolder {
    /// The folder at `path`, whose files take at most `most_bytes` together, and at most a quarter of
    /// what is free there.
    ///
    /// # Errors
    /// What the system says if no file can be made in it.
    pub fn new(path: &Path, most_bytes: u64) -> io::Result<Self> {
        tempfile::tempfile_in(path)?;
        Ok(Self { path: path.to_owned(), most_bytes, room: Arc::default() })
    }

    /// An empty file, to be written in pieces of so many bytes. Once its part of the room is full, it
    /// is written again from its beginning; how long it may get shows with its first write.
    ///
    /// # Errors
    /// [`io::ErrorKind::StorageFull`] where too little is free, also for one more beside those that
    /// are there, or what the system says.
    pub fn file(&self, piece_bytes: u32) -> io::Result<ScratchFile> {
        let bytes_if_first = room_in(&self.path, self.most_bytes)?;
        let share = Share::new(&self.room, bytes_if_first);
        if share.bytes() < LEAST_SHARE_BYTES.max(piece_bytes.into()) {
            let files = share.room().files;
            let what = format!("{} has too little room for {files} files", self.path.display());
            return Err(io::Error::new(io::ErrorKind::StorageFull, what));
        }
        let file = Arc::new(tempfile::tempfile_in(&self.path)?);
        Ok(ScratchFile { file, most: Most::Share(Arc::new(share)) })
    }
}

/// How many bytes may be taken in `folder`, at most `most_bytes`.
fn room_in(folder: &Path, most_bytes: u64) -> io::Result<u64> {
    let free = holdall_sys::disk::free_bytes(folder)?;
    let room_bytes = most_bytes.min(free / PART_OF_FREE);
    if room_bytes < LEAST_BYTES {
        let what = format!("{} has only {free} bytes free", folder.display());
        return Err(io::Error::new(io::ErrorKind::StorageFull, what));
    }
    Ok(room_bytes)
}

/// A file of bounded length; one that is written has no name and goes with its last user.
#[derive(Debug, Clone)]
pub struct ScratchFile {
    file: Arc<File>,
    most: Most,
}

/// How long a file may get, or is.
#[derive(Debug, Clone)]
enum Most {
    Bytes(u64),
    Share(Arc<Share>),
}

impl ScratchFile {
    /// One in `folder` that has content to be read: `most_bytes`, or a quarter of what is free there
    /// if that is less.
    ///
    /// # Errors
    /// [`io::ErrorKind::StorageFull`] where too little is free, or what the system says.
    pub fn filled(folder: &Path, most_bytes: u64) -> io::Result<Self> {
        let length_bytes = room_in(folder, most_bytes)?;
        let file = tempfile::tempfile_in(folder)?;
        let piece = noise(FILL_BYTES);
        let mut at = 0;
        while at < length_bytes {
            let rest = usize::try_from(length_bytes - at).unwrap_or(FILL_BYTES);
            file.write_all_at(&piece[..rest.min(FILL_BYTES)], at)?;
            at += FILL_BYTES as u64;
        }
        file.sync_data()?;
        Ok(Self { file: Arc::new(file), most: Most::Bytes(length_bytes) })
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
        Ok(Self { file: Arc::new(file), most: Most::Bytes(found.len()) })
    }

    fn limit_bytes(&self) -> u64 {
        match &self.most {
            Most::Bytes(bytes) => *bytes,
            Most::Share(share) => share.bytes(),
        }
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
pub struct Source {
    end: End,
    at: u64,
    buffer: Vec<u8>,
    /// How long each read took.
    reads: Samples,
}

impl Source {
    /// One that is read in pieces of so many bytes, from the beginning.
    pub fn new(end: &End, buffer_bytes: u32) -> Self {
        if let End::File(file) = end {
            file.forget_cached();
        }
        let buffer = noise(buffer_bytes as usize);
        Self { end: end.clone(), at: 0, buffer, reads: Samples::default() }
    }

    /// The next piece, at most as long as the buffer; never empty.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if the file is empty meanwhile, or what the system says.
    pub fn next_piece(&mut self) -> io::Result<&[u8]> {
        let End::File(file) = &self.end else { return Ok(&self.buffer) };
        let begun = Instant::now();
        let rest = file.limit_bytes().saturating_sub(self.at);
        let want = self.buffer.len().min(usize::try_from(rest).unwrap_or(usize::MAX));
        let length = match file.file.read_at(&mut self.buffer[..want], self.at)? {
            // At its end, or it was cut short meanwhile: once more from the beginning, and from the disk.
            0 => {
                self.at = 0;
                file.forget_cached();
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

    /// How long the reads of a file took; `None` without any.
    pub fn latency(self) -> Option<Latency> {
        self.reads.latency()
    }
}

/// Where the bytes of one stream go.
pub struct Sink {
    end: End,
    wait: Wait,
    at: u64,
    /// Found with the first write: the files of the other streams have to be there.
    limit_bytes: Option<u64>,
    /// How long each write took, with what it waited for.
    writes: Samples,
}

impl Sink {
    /// One that is written from the beginning.
    pub fn new(end: &End, wait: Wait) -> Self {
        Self { end: end.clone(), wait, at: 0, limit_bytes: None, writes: Samples::default() }
    }

    /// Takes a piece.
    ///
    /// # Errors
    /// What the system says.
    pub fn take(&mut self, piece: &[u8]) -> io::Result<()> {
        let End::File(file) = &self.end else { return Ok(()) };
        let limit_bytes = *self.limit_bytes.get_or_insert_with(|| file.limit_bytes());
        let begun = Instant::now();
        if self.at + piece.len() as u64 > limit_bytes {
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
    ///
    /// # Errors
    /// What the system says.
    pub fn finish(&mut self) -> io::Result<()> {
        match (&self.end, self.wait) {
            (End::File(file), Wait::AtEnd) => file.file.sync_all(),
            _ => Ok(()),
        }
    }

    /// How long the writes to a file took; `None` without any.
    pub fn latency(self) -> Option<Latency> {
        self.writes.latency()
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
        let scratch = ScratchFolder::new(folder.path(), LEAST_BYTES).unwrap();
        let mut file = scratch.file(4).unwrap();
        file.most = Most::Bytes(10);
        let mut sink = Sink::new(&End::File(file.clone()), Wait::EachWrite);
        for piece in [b"aaaa", b"bbbb", b"cccc"] {
            sink.take(piece).unwrap();
        }
        assert_eq!((file.file.metadata().unwrap().len(), sink.writes.len()), (8, 3));
        let mut source = Source::new(&End::File(file), 1024);
        assert_eq!(source.next_piece().unwrap(), b"ccccbbbb");
        assert_eq!(source.next_piece().unwrap(), b"ccccbbbb");
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
        let scratch = ScratchFolder::new(folder.path(), 1000).unwrap();
        assert_eq!(scratch.file(4).unwrap_err().kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn the_files_of_a_folder_share_what_one_alone_may_take() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = ScratchFolder::new(folder.path(), LEAST_BYTES).unwrap();
        let files = [(); 4].map(|()| scratch.file(4 << 20).unwrap());
        let sink = |file: &ScratchFile| Sink::new(&End::File(file.clone()), Wait::Never);
        let mut sinks = files.each_ref().map(sink);
        for _ in 0..6 {
            sinks.iter_mut().for_each(|sink| sink.take(&[7; 1 << 20]).unwrap());
        }
        let length = |file: &ScratchFile| file.file.metadata().unwrap().len();
        assert_eq!(files.each_ref().map(length), [LEAST_BYTES / 4; 4]);
        // A fifth could not have a single piece.
        let error = scratch.file(4 << 20).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        drop((files, sinks));
        assert_eq!(scratch.file(4 << 20).unwrap().limit_bytes(), LEAST_BYTES);
    }
}
