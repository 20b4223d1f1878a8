//! Entries of a tree in words.

use holdall_tree::{EntryKind, Time};

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

/// An entry's time in nanoseconds since 1970 UTC.
pub(crate) fn modified_ns(time: Time) -> i64 {
    time.secs.saturating_mul(1_000_000_000).saturating_add(i64::from(time.nanos))
}
