//! How half a restore is told from a whole one by the restore that comes after it.
//!
//! Who is killed leaves what it was making, under its own name: a name to work under would cost a call more
//! for each of a million files. So everything is made with a mode that hardly anything else has, and gets its
//! own as the last thing of all, a file when its content is on the disk. What has such a mode where a restore was
//! killed ([`mark`](super::mark)) is taken for unfinished, and made anew whatever is to become of what is there.
//!
//! Symbolic links have no mode: one of these may keep the time of its making. Nor has what lies on a file
//! system without modes, where only another time or length tells.

use holdall_sys::{FileKind, Stat};

/// The mode of what is being made and is no directory: only to be written, by its owner, and sticky.
pub(super) const MODE: u32 = 0o1200;
/// That of a directory, in which names can be made: for its owner alone, and sticky.
pub(super) const DIRECTORY_MODE: u32 = 0o1700;

/// What a directory has of the one above, until it is rid of it.
const SET_GROUP_ID: u32 = 0o2000;

/// Whether this has the mode of what is being made.
pub(super) fn has_mode(there: &Stat) -> bool {
    match there.kind {
        FileKind::Dir => there.mode & !SET_GROUP_ID == DIRECTORY_MODE,
        FileKind::Symlink => false,
        _ => there.mode == MODE,
    }
}
