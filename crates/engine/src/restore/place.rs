//! Making a name where something may be already.

use std::io;

use holdall_sys::{FileKind, Name, Stat, TargetDir, Timestamp};
use holdall_tree::{Entry, Time};

use super::Overwrite;
use super::context::Context;

/// What came of making a name.
pub(super) enum Made<T> {
    /// It was made.
    New(T),
    /// What was there is kept.
    Kept,
}

impl Overwrite {
    fn replaces(self, there: &Stat, entry: &Entry) -> bool {
        match self {
            Self::Never => false,
            Self::Always => true,
            Self::IfNewer => there.mtime < timestamp(entry.mtime),
        }
    }
}

/// Makes `name` with `create`, which must fail where anything is there; what is there is then kept
/// or makes room, as the options say.
pub(super) fn make<T>(
    context: &Context<'_>,
    dir: &TargetDir,
    name: Name<'_>,
    entry: &Entry,
    create: impl Fn() -> io::Result<T>,
) -> io::Result<Made<T>> {
    match create() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let Some(overwrite) = context.options.overwrite else { return Err(error) };
            let there = dir.as_dir().stat(name)?;
            if !overwrite.replaces(&there, entry) {
                return Ok(Made::Kept);
            }
            if there.kind == FileKind::Dir {
                dir.remove_dir(name)?
            } else {
                dir.unlink(name)?
            }
            create().map(Made::New)
        }
        made => made.map(Made::New),
    }
}

/// The same time in the system's words.
pub(super) fn timestamp(time: Time) -> Timestamp {
    Timestamp { secs: time.secs, nanos: time.nanos }
}
