//! What a restore is asked to do, and what it says that it did.

use holdall_meter::StageCounters;
use serde::Serialize;

/// What to do with what lies at the target already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwrite {
    /// Keep what is there.
    Never,
    /// Replace what was modified before the snapshot's entry was.
    IfNewer,
    /// Replace it.
    Always,
}

/// Whether an entry is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selected {
    /// It is, and what lies below it is asked about too.
    Yes,
    /// It is not, but something below it may be: the directory is made only if it is needed.
    Below,
    /// Neither it nor anything below it.
    No,
}

/// Chooses entries by absolute path in the snapshot; the flag says that it is a directory.
pub type Selection = Box<dyn Fn(&[u8], bool) -> Selected + Send + Sync>;

/// How to restore.
#[derive(Default)]
pub struct RestoreOptions {
    /// What to do with what is there; `None` refuses a target that holds anything.
    pub overwrite: Option<Overwrite>,
    /// Take owners' numbers as they are recorded, whatever their names are here.
    pub numeric_ids: bool,
    /// Treat what an ordinary user may not set as a problem, not as a note.
    pub strict: bool,
    /// Only count what would be restored.
    pub dry_run: bool,
    /// Read back everything that was written.
    pub verify: bool,
    /// The target is where it was backed up from, and was not typed: root follows no link of another user to it.
    pub in_place: bool,
    /// Which entries to restore; `None` is all.
    pub select: Option<Selection>,
}

/// What a restore did.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RestoreSummary {
    /// Entries restored that are not directories: files, links, fifos, sockets, devices.
    pub files: u64,
    /// Directories restored.
    pub dirs: u64,
    /// How many of these were there, and stay as they are but for what is restored into them.
    pub kept_dirs: u64,
    /// Bytes of content written, without holes.
    pub bytes: u64,
    /// Entries that were there and kept, could not be made by an ordinary user, or lie below a
    /// directory that could not be made.
    pub skipped: u64,
    /// How many of these were there and kept.
    pub kept: u64,
    /// What an ordinary user may not set, one line with the count of each kind, and links that are copies.
    pub notes: Vec<String>,
    /// How long it took.
    pub duration_seconds: f64,
    /// Entries that could not be restored, or not wholly.
    pub problems: u64,
    /// How many of these are so since what is stored of them is damaged.
    pub damaged: u64,
    /// What the stages counted.
    pub stages: Vec<StageCounters>,
}
