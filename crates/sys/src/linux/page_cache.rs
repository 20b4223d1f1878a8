//! What the system keeps of files in memory.

use std::fs::File;
use std::num::NonZeroU64;

use rustix::fs::Advice;

/// Asks the system to write the `len_bytes` bytes of a file from `offset` on to the disk and not to keep
/// them in memory: what is on the disk already leaves memory, what is not begins to be written and
/// stays. Does not wait until it is written, at most for room in the disk's queue. It is advice: a system that does not take it keeps them.
pub fn let_go(file: &File, offset: u64, len_bytes: u64) {
    // No length would mean all that follows.
    if let Some(len_bytes) = NonZeroU64::new(len_bytes) {
        let _ = rustix::fs::fadvise(file, offset, Some(len_bytes), Advice::DontNeed);
    }
}
