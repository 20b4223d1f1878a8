//! Reading back what was written, from the disk and not from the memory that a write fills.
//!
//! A disk that keeps something else, or nothing, answers every read rightly as long as the system has
//! the bytes in memory. So what is to be read back waits until there is some of it; then all of it is
//! sent to its disk with one call, let go of in memory, and read.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::{Arc, Mutex};

use holdall_sys::{page_cache, raw_file};

use crate::run::lock;

/// Bytes that may wait.
const WAITING_BYTES: usize = 64 << 20;
/// Pieces that may wait, as each may hold a file open.
const WAITING_PIECES: usize = 256;

/// What waits to be read back.
#[derive(Default)]
pub(super) struct ReadBack {
    waiting: Mutex<Waiting>,
    /// Held by who reads: what is read is held open, and no more than may wait gathers meanwhile.
    reading: Mutex<()>,
}

#[derive(Default)]
struct Waiting {
    pieces: Vec<Piece>,
    bytes: usize,
}

/// Bytes of a file.
pub(super) struct Piece {
    pub(super) file: Arc<File>,
    /// The file's, in the snapshot.
    pub(super) path: Vec<u8>,
    pub(super) offset: u64,
    pub(super) len_bytes: usize,
    pub(super) hash: blake3::Hash,
}

/// What could not be read back.
pub(super) enum Unread<'a> {
    /// The file of this path, in the snapshot.
    File(&'a [u8], io::Error),
    /// All that waited: its disk did not take it.
    All(io::Error),
}

impl ReadBack {
    /// Has a piece wait. True if so much waits that it is to be read back now.
    pub(super) fn wrote(&self, piece: Piece) -> bool {
        let mut waiting = lock(&self.waiting);
        waiting.bytes += piece.len_bytes;
        waiting.pieces.push(piece);
        waiting.bytes >= WAITING_BYTES || waiting.pieces.len() >= WAITING_PIECES
    }

    /// Reads back what waits, or gives it up if the restore ends.
    pub(super) fn finish(&self, ends: impl Fn() -> bool, report: impl Fn(Unread<'_>)) {
        let _turn = lock(&self.reading);
        let rest = std::mem::take(&mut *lock(&self.waiting));
        if !rest.pieces.is_empty() && !ends() {
            rest.read(report);
        }
    }

    /// Lets go of a file.
    pub(super) fn forget(&self, file: &Arc<File>) {
        let mut waiting = lock(&self.waiting);
        waiting.pieces.retain(|piece| !Arc::ptr_eq(&piece.file, file));
        waiting.bytes = waiting.pieces.iter().map(|piece| piece.len_bytes).sum();
    }
}

impl Waiting {
    /// Has every disk that has some of it keep all that it was sent.
    fn sync(&self) -> io::Result<()> {
        let mut synced = BTreeSet::new();
        for piece in &self.pieces {
            if synced.insert(piece.device()?) {
                match raw_file::sync_file_system(&piece.file) {
                    Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                        return self.pieces.iter().try_for_each(|piece| piece.file.sync_all());
                    }
                    synced => synced?,
                }
            }
        }
        Ok(())
    }

    fn read(self, report: impl Fn(Unread<'_>)) {
        if let Err(error) = self.sync() {
            return report(Unread::All(error));
        }
        for piece in self.pieces {
            if let Err(error) = piece.read() {
                report(Unread::File(&piece.path, error));
            }
        }
    }
}

impl Piece {
    fn device(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.dev())
    }

    fn read(&self) -> io::Result<()> {
        // Not of its bytes alone: a page that belongs to two pieces would stay.
        page_cache::let_go(&self.file, 0, i64::MAX as u64);
        let mut found = vec![0; self.len_bytes];
        self.file.read_exact_at(&mut found, self.offset)?;
        if blake3::hash(&found) == self.hash {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "it is not what was written"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::context::Context;
    use super::*;
    use crate::Run;
    use crate::restore::RestoreOptions;

    #[test]
    fn what_is_not_what_was_written_is_told_and_few_wait() {
        let folder = tempfile::tempdir().unwrap();
        let (run, options) = (Run::new(), RestoreOptions::default());
        let context = Context::of_folder(folder.path(), &options, &run);
        let file = Arc::new(File::create_new(folder.path().join("file")).unwrap());
        file.write_all_at(b"what is there", 0).unwrap();
        let file = Arc::new(File::open(folder.path().join("file")).unwrap());
        let wrote = |path: &str, offset, bytes: &[u8]| {
            let (file, path) = (Arc::clone(&file), path.as_bytes().to_vec());
            let piece =
                Piece { file, path, offset, len_bytes: bytes.len(), hash: blake3::hash(bytes) };
            context.wrote(piece);
        };
        wrote("/right", 0, b"what");
        wrote("/wrong", 5, b"was");
        wrote("/short", 8, b"there again");
        context.read_back();
        let told: Vec<_> = run.take_problems().into_iter().map(|problem| problem.path).collect();
        let place = |name: &str| folder.path().join(name).into_os_string().into_encoded_bytes();
        assert_eq!(told, [place("wrong"), place("short")]);
        (0..=WAITING_PIECES).for_each(|_| wrote("/right", 0, b"what"));
        assert_eq!(Arc::strong_count(&file), 2);
        assert_eq!(run.problem_count(), 2);
    }
}
