//! What is written to measure the disk as a put does: a payload that grows, and behind it its journal.
//!
//! ```text
//! payload   | bytes of request 0 | bytes of request 1 | ...   durable first
//! journal   | entry 0 | entry 1 | ...                         durable behind it
//! ```
//!
//! Both have no name, so that nothing stays of them. As long as a pack, they give way to new ones.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

use holdall_format::limits::PACK_TARGET_BYTES;

/// What a journal has of the blocks of a request, more or less.
const ENTRY_BYTES: usize = 1024;

/// A payload and its journal.
pub(super) struct Tail {
    payload: File,
    journal: File,
    ends: Mutex<Ends>,
}

#[derive(Default)]
struct Ends {
    payload: u64,
    journal: u64,
}

impl Tail {
    /// One in two empty files.
    pub(super) fn new(payload: File, journal: File) -> Self {
        Self { payload, journal, ends: Mutex::default() }
    }

    /// Whether it is as long as it may get.
    pub(super) fn is_full(&self) -> bool {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner).payload >= PACK_TARGET_BYTES
    }

    /// Appends what comes with a request, which is not durable before a [`Tail::sync`].
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        self.payload.write_all_at(bytes, ends.payload)?;
        ends.payload += bytes.len() as u64;
        let entry = bytes.get(..ENTRY_BYTES).unwrap_or(bytes);
        self.journal.write_all_at(entry, ends.journal)?;
        ends.journal += entry.len() as u64;
        Ok(())
    }

    /// Makes durable what was appended: the payload, and then its journal.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.payload.sync_data()?;
        self.journal.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_lies_behind_what_came_before_and_each_has_an_entry() {
        let files = [(); 2].map(|()| tempfile::tempfile().unwrap());
        let [payload, journal] = files.each_ref().map(|file| file.try_clone().unwrap());
        let tail = Tail::new(payload, journal);
        for content in [vec![1; 5000], vec![2; 10]] {
            tail.append(&content).unwrap();
            tail.sync().unwrap();
        }
        assert_eq!(files.each_ref().map(|file| file.metadata().unwrap().len()), [5010, 1034]);
        let mut last = [0; 12];
        files[0].read_exact_at(&mut last, 4998).unwrap();
        assert_eq!(last, [1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]);
    }
}
