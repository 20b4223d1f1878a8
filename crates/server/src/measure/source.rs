//! A file that is read to measure the disk.
//!
//! It is long enough for the disk to be read and not only asked, and short enough to be made while
//! somebody waits. Whoever reads takes the next of its bytes, and after the last of them it is dropped from the
//! cache and begins again.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use holdall_sys::raw_file;

const FILE_BYTES: u64 = 64 << 20;
const PIECE_BYTES: usize = 1 << 20;

/// The file, and how far it was read.
pub(super) struct Source {
    file: File,
    next: Mutex<u64>,
}

impl Source {
    /// Fills an empty file with bytes that do not compress, which are durable, and not in the cache, when
    /// this returns.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn make(mut file: File) -> io::Result<Self> {
        let mut content = blake3::Hasher::new().finalize_xof();
        let mut piece = vec![0; PIECE_BYTES];
        for _ in 0..FILE_BYTES / PIECE_BYTES as u64 {
            content.fill(&mut piece);
            file.write_all(&piece)?;
        }
        file.sync_data()?;
        raw_file::drop_cached(&file)?;
        Ok(Self { file, next: Mutex::new(0) })
    }

    /// The next `bytes`, at most all; from the beginning again where there are not so many left.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn read(&self, bytes: u64) -> io::Result<Bytes> {
        let at = self.take(bytes)?;
        let mut read = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
        self.file.read_exact_at(&mut read, at)?;
        Ok(read.into())
    }

    fn take(&self, bytes: u64) -> io::Result<u64> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if *next + bytes > FILE_BYTES {
            *next = 0;
            raw_file::drop_cached(&self.file)?;
        }
        let at = *next;
        *next += bytes;
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_on_and_from_its_beginning_again() {
        let source = Source::make(tempfile::tempfile().unwrap()).unwrap();
        let third = FILE_BYTES / 3;
        let parts: Vec<_> = (0..4).map(|_| source.read(third).unwrap()).collect();
        assert!(parts[0] != parts[1] && parts[1] != parts[2] && parts[0] == parts[3]);
        assert_eq!(source.read(0).unwrap().len(), 0);
        assert!(source.read(FILE_BYTES).is_ok());
        let zeros = parts[0].iter().filter(|&&byte| byte == 0).count() as u64;
        assert!((third / 300..third / 200).contains(&zeros), "{zeros} of {third} bytes are 0");
    }
}
