//! The mark of a restore that goes on: a file in the target, made before anything else and removed after it.
//!
//! What is being made has a mode that hardly anything else has ([`unfinished`](super::unfinished)), and what has it
//! is made anew. A user's own file may have it too. So the mode counts only below a mark that an earlier restore
//! left, and only of what changed since: there a restore was killed, or could not finish what it made.
//!
//! The mark is on the disk before the first name is, and is removed when all of them are. It stays where something
//! stays unfinished. Its modification time is when the first of the restores began that left it, by the clock of
//! its file system; 1970 where that keeps no change times, as over sshfs.
//!
//! Where no mark can be made, as for a user who may not write to the target itself, the mode alone tells.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use holdall_sys::{FileKind, Name, Stat, TargetDir, Timestamp, metadata, stat};

use super::unfinished::has_mode;

/// The name of a mark.
pub(super) const NAME: &[u8] = b".holdall-restore.unfinished";
const MODE: u32 = 0o600;
/// Before any change.
const LONG_AGO: Timestamp = Timestamp { secs: 1, nanos: 0 };

/// Marks that earlier restores left in a target, or above it.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    left: Vec<Left>,
    /// Nothing tells.
    is_unknown: AtomicBool,
}

#[derive(Debug)]
struct Left {
    device: u64,
    since: Timestamp,
}

impl Earlier {
    /// Finds those of a target, which need not be there.
    pub(super) fn find(target: &Path) -> Self {
        let target = std::fs::canonicalize(target).unwrap_or_default();
        let mark = |above: &Path| Left::of(&TargetDir::open_root(above).ok()?);
        Self { left: target.ancestors().filter_map(mark).collect(), ..Self::default() }
    }

    /// Whether a restore that was killed had been making this.
    pub(super) fn made(&self, there: &Stat) -> bool {
        // Another file system has another clock.
        let may_be_of = |one: &Left| one.device != there.device || there.ctime >= one.since;
        has_mode(there) && (!self.can_tell() || self.left.iter().any(may_be_of))
    }

    /// Says that no mark can be made here: then an earlier restore could make none either.
    pub(super) fn tell_nothing(&self) {
        self.is_unknown.store(true, Ordering::Release);
    }

    /// Whether a mark can be made here.
    pub(super) fn can_tell(&self) -> bool {
        !self.is_unknown.load(Ordering::Acquire)
    }
}

impl Left {
    fn of(dir: &TargetDir) -> Option<Self> {
        let there = dir.as_dir().stat(Name::new(NAME).ok()?).ok()?;
        (there.kind == FileKind::File).then_some(Self { device: there.device, since: there.mtime })
    }
}

/// Makes the mark of a restore in its target, unless an earlier one's is there; it is on the disk then.
///
/// # Errors
/// The system's.
pub(super) fn make(root: &TargetDir) -> io::Result<()> {
    let name = Name::new(NAME)?;
    match keeping_time(root, || root.create_file(name, MODE)) {
        Ok(file) => {
            let is_safe = date(&file).and_then(|()| file.sync_all()).and_then(|()| root.sync());
            // One that may not outlive a power cut tells nothing.
            is_safe.inspect_err(|_| drop(root.unlink(name)))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes it.
///
/// # Errors
/// The system's.
pub(super) fn remove(root: &TargetDir) -> io::Result<()> {
    let name = Name::new(NAME)?;
    keeping_time(root, || root.unlink(name))
}

/// Dates it long ago where its change time follows what it is dated.
fn date(file: &File) -> io::Result<()> {
    let now = stat::of_fd(file)?.mtime;
    metadata::set_mtime(file, LONG_AGO)?;
    let has_change_times = stat::of_fd(file)?.ctime > LONG_AGO;
    if has_change_times { metadata::set_mtime(file, now) } else { Ok(()) }
}

/// Changes the names in a directory, which keeps its modification time.
fn keeping_time<T>(dir: &TargetDir, change: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let before = dir.as_dir().stat_self()?.mtime;
    let changed = change()?;
    // It is the user's to give where this may not.
    let _ = metadata::set_mtime(dir, before);
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::restore::unfinished;

    #[test]
    fn only_what_changed_below_a_mark_since_it_was_made_was_being_made() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("below");
        std::fs::create_dir(&below).unwrap();
        let (root, inner) =
            [folder.path(), &below].map(|path| TargetDir::open_root(path).unwrap()).into();
        let file = Name::new(b"file").unwrap();
        drop(inner.create_file(file, unfinished::MODE).unwrap());
        let there = || inner.as_dir().stat(file).unwrap();
        assert!(!Earlier::find(&below).made(&there()));
        let time =
            || std::fs::metadata(folder.path()).map(|found| (found.mtime(), found.mtime_nsec()));
        let before = time().unwrap();
        make(&root).unwrap();
        make(&root).unwrap();
        let changed = |seconds: i64| {
            let ctime = Timestamp { secs: there().ctime.secs + seconds, ..there().ctime };
            Stat { ctime, ..there() }
        };
        let earlier = Earlier::find(&below);
        assert!(earlier.made(&changed(1)) && !earlier.made(&changed(-1)), "{earlier:?}");
        assert!(earlier.made(&Stat { device: 0, ..changed(-1) }), "another clock");
        assert!(!earlier.made(&Stat { mode: 0o644, ..changed(1) }));
        remove(&root).unwrap();
        assert_eq!(time().unwrap(), before);
        let earlier = Earlier::find(&below);
        assert!(!earlier.made(&changed(1)));
        earlier.tell_nothing();
        assert!(earlier.made(&changed(-1)));
    }
}
