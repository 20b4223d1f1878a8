//! Memory that the host of a virtual machine has given already.
//!
//! What a machine has had free for two seconds its host may take back (free page reporting of a balloon), and
//! then each page that a cache takes waits for the host: a file that was read at 3 GB/s through the cache is
//! read at 0.5 GB/s. Which of two tools meets that is chance. So as much as a run through the cache needs is
//! taken and given back just before each run of either tool.

use std::hint::black_box;

use crate::machine;

/// Has the host give so many bytes of memory, which are free when this returns; at most half of what is available.
pub(super) fn warm(bytes: u64) {
    let bytes = bytes.min(machine::memory_bytes("MemAvailable") / 2);
    // Zeros would be memory that nobody has yet.
    let touched = vec![1_u8; usize::try_from(bytes).unwrap_or_default()];
    drop(black_box(touched));
}
