//! Entries of a tree in words.

use holdall_engine::{EntryKind, Time};

/// What an entry is, as programs are told.
pub(crate) fn word(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::File => "file",
        EntryKind::Directory => "dir",
        EntryKind::Symlink => "symlink",
        EntryKind::Fifo => "fifo",
        EntryKind::Socket => "socket",
        EntryKind::CharDevice { .. } => "chardev",
        EntryKind::BlockDevice { .. } => "blockdev",
    }
}

/// An entry's time in nanoseconds since 1970 UTC: more than 64 bits hold.
pub(crate) fn modified_ns(time: Time) -> i128 {
    i128::from(time.secs) * 1_000_000_000 + i128::from(time.nanos)
}
