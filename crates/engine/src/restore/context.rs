//! What the threads of a restore share: options, rights, counts, and the first error that ends it.

use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use holdall_sys::TargetDir;
use holdall_sys::users::{self, Users};
use holdall_tree::Entry;

use super::immutable::if_immutable;
use super::links::Links;
use super::mark::Earlier;
use super::notes::{Note, Notes};
use super::read_back::{Piece, ReadBack, Unread};
use super::stored::Stored;
use super::times::Times;
use super::write_behind::WriteBehind;
use super::{RestoreOptions, RestoreSummary};
use crate::run::{add_bytes, lock};
use crate::{EngineError, Run};

/// Counts of what was done.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) files: AtomicU64,
    pub(super) dirs: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) skipped: AtomicU64,
    /// Of the skipped, those that are there and stay; and directories that are there and stay as they are.
    pub(super) kept: AtomicU64,
    pub(super) kept_dirs: AtomicU64,
}

/// Shared by all threads of one restore.
pub(super) struct Context<'a> {
    pub(super) options: &'a RestoreOptions,
    pub(super) run: &'a Run,
    /// The target, for what is found again by its path.
    pub(super) root: TargetDir,
    /// The target as it was named.
    pub(super) target: PathBuf,
    /// The absolute path in the snapshot that the target stands for.
    pub(super) base_path: Vec<u8>,
    pub(super) links: Links,
    /// The snapshot, to be asked of what is at the target; tests have none.
    pub(super) stored: Option<Stored<'a>>,
    pub(super) tally: Tally,
    pub(super) notes: Notes,
    pub(super) times: Times,
    pub(super) write_behind: WriteBehind,
    read_back: ReadBack,
    /// Marks of restores that came before.
    pub(super) earlier: Earlier,
    leaves_unfinished: AtomicBool,
    failed_syncs: AtomicU64,
    users: Users,
    uid: u32,
    gid: u32,
    failed: AtomicBool,
    failure: Mutex<Option<EngineError>>,
}

impl<'a> Context<'a> {
    pub(super) fn new(
        options: &'a RestoreOptions,
        run: &'a Run,
        root: TargetDir,
        target: &Path,
        base_path: Vec<u8>,
        links: Links,
    ) -> Result<Self, EngineError> {
        let users = Users::load()
            .map_err(|error| EngineError::io("reading /etc/passwd and /etc/group", error))?;
        Ok(Self {
            options,
            run,
            root,
            target: target.to_owned(),
            base_path,
            links,
            stored: None,
            tally: Tally::default(),
            notes: Notes::default(),
            times: Times::default(),
            write_behind: WriteBehind::default(),
            read_back: ReadBack::default(),
            earlier: Earlier::default(),
            leaves_unfinished: AtomicBool::new(false),
            failed_syncs: AtomicU64::new(0),
            users,
            uid: users::effective_uid(),
            gid: users::effective_gid(),
            failed: AtomicBool::new(false),
            failure: Mutex::default(),
        })
    }

    /// That of a restore into a folder, which has its spool, too.
    #[cfg(test)]
    pub(super) fn of_folder(folder: &Path, options: &'a RestoreOptions, run: &'a Run) -> Self {
        let links = Links::new(folder, "x").unwrap();
        let root = TargetDir::open_root(folder).unwrap();
        Self::new(options, run, root, folder, b"/".to_vec(), links).unwrap()
    }

    /// Takes this process for one of that user.
    #[cfg(test)]
    pub(super) fn pretend_to_be(&mut self, uid: u32, gid: u32) {
        (self.uid, self.gid) = (uid, gid);
    }

    /// Whether this is an ordinary user, who may not do everything.
    pub(super) fn ordinary(&self) -> bool {
        self.uid != 0
    }

    /// The user and group that new files belong to.
    pub(super) fn own_ids(&self) -> (u32, u32) {
        (self.uid, self.gid)
    }

    /// Who is to own an entry here: by name where that name exists, else by number.
    pub(super) fn owner(&self, entry: &Entry) -> (u32, u32) {
        if self.options.numeric_ids {
            return (entry.uid, entry.gid);
        }
        (
            self.users.uid_of(&entry.user).unwrap_or(entry.uid),
            self.users.gid_of(&entry.group).unwrap_or(entry.gid),
        )
    }

    /// Reports what could not be done to an entry, which has that path in the snapshot, by where it is in the
    /// target. What is wrong in the repository is told by the path in the snapshot.
    pub(super) fn problem(&self, path: &[u8], reason: impl Into<String>) {
        self.run.problem(&self.in_target(path), reason);
    }

    /// Where what has that path in the snapshot is in the target.
    fn in_target(&self, path: &[u8]) -> Vec<u8> {
        let base = self.base_path.strip_suffix(b"/").unwrap_or(&self.base_path);
        let below = path.strip_prefix(base).unwrap_or(path);
        let target = self.target.as_os_str().as_bytes();
        match below.strip_prefix(b"/").unwrap_or(below) {
            b"" => target.to_vec(),
            below => [target.strip_suffix(b"/").unwrap_or(target), b"/", below].concat(),
        }
    }

    /// Counts something that an ordinary user may not do, or reports it where that is wished.
    pub(super) fn note(&self, note: Note, path: &dyn Fn() -> Vec<u8>) {
        if self.options.strict {
            self.problem(&path(), format!("{}: only root may restore it", note.what()));
        } else {
            self.notes.count(note);
        }
    }

    /// Counts a name that became a file of its own and should be one more of another, or reports it where
    /// that is wished.
    pub(super) fn note_copy(&self, path: &dyn Fn() -> Vec<u8>) {
        if self.options.strict {
            self.problem(&path(), "it could not be linked, and is a copy");
        } else {
            self.notes.count_copy();
        }
    }

    /// The same of a name that was there, is kept, and should be one more of another.
    pub(super) fn note_apart(&self, path: &dyn Fn() -> Vec<u8>) {
        if self.options.strict {
            self.problem(
                &path(),
                "it is kept as it was, and is not linked to the others of its group",
            );
        } else {
            self.notes.count_apart();
        }
    }

    /// Notes that a file system keeps times less exactly, or reports it where that is wished.
    pub(super) fn note_coarse(&self, path: &dyn Fn() -> Vec<u8>) {
        if self.options.strict {
            let reason = "the target's file system keeps its modification time, and those of others, less exactly";
            self.problem(&path(), reason);
        } else {
            self.notes.say_coarse();
        }
    }

    /// Reports that an entry could not be written. A full target ends the restore, for nothing
    /// after this entry would fit either.
    pub(super) fn write_failed(&self, path: Vec<u8>, what: &str, error: &io::Error) {
        if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            let path = self.in_target(&path);
            let what = format!("cannot write {}", path.escape_ascii());
            self.fail(EngineError::io(what, io::Error::from(error.kind())));
        } else {
            self.not_done(&path, what, error);
        }
    }

    /// Reports what could not be done with an entry, and ends the restore where the process lacks something:
    /// nothing after this entry could be done either.
    pub(super) fn not_done(&self, path: &[u8], what: &str, error: &io::Error) {
        match EngineError::lack(path, what, error) {
            Some(lack) => self.fail(lack),
            None => self.problem(path, format!("{what}: {error}{}", if_immutable(error))),
        }
    }

    /// How often a disk did not take what was written. The system tells of each error once, so what was being
    /// written meanwhile may be lost as well.
    pub(super) fn failed_syncs(&self) -> u64 {
        self.failed_syncs.load(Ordering::Acquire)
    }

    /// Counts one.
    pub(super) fn sync_failed(&self) {
        self.failed_syncs.fetch_add(1, Ordering::Release);
    }

    /// Says that something keeps the mode of what is being made.
    pub(super) fn leave_unfinished(&self) {
        self.leaves_unfinished.store(true, Ordering::Release);
    }

    /// Whether something keeps the mode of what is being made.
    pub(super) fn leaves_unfinished(&self) -> bool {
        self.leaves_unfinished.load(Ordering::Acquire)
    }

    /// Ends the restore, as names and modes may not be on the disk.
    pub(super) fn not_synced(&self, error: io::Error) {
        self.leave_unfinished();
        let target = self.target.display();
        let what =
            format!("{target}: writing the names and modes of what was restored to its disk");
        self.fail(EngineError::io(what, error));
    }

    /// Has what was written be read back, once enough waits.
    pub(super) fn wrote(&self, piece: Piece) {
        if self.read_back.wrote(piece) {
            self.read_back();
        }
    }

    /// Reads back what waits.
    pub(super) fn read_back(&self) {
        let ends = || self.stopping();
        self.read_back.finish(ends, |unread| match unread {
            Unread::File(path, error) => self.not_done(path, "it cannot be read back", &error),
            Unread::All(error) => {
                self.fail(EngineError::io("writing what was restored to the disk", error));
            }
        });
    }

    /// Lets go of a file that is removed: held open, it would keep its room on the disk.
    pub(super) fn let_go(&self, file: &Arc<File>) {
        self.write_behind.forget(file);
        self.read_back.forget(file);
    }

    /// Ends the restore; the first error counts.
    pub(super) fn fail(&self, error: EngineError) {
        lock(&self.failure).get_or_insert(error);
        self.failed.store(true, Ordering::Release);
    }

    /// Whether the threads should end.
    pub(super) fn stopping(&self) -> bool {
        self.failed.load(Ordering::Acquire) || self.run.stopping()
    }

    /// Why the restore ended, if it was not because everything was done.
    pub(super) fn outcome(&self) -> Result<(), EngineError> {
        match lock(&self.failure).take() {
            Some(error) => Err(error),
            None => self.run.check(),
        }
    }

    /// What was done so far, without times and stages.
    pub(super) fn summary(&self) -> RestoreSummary {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        RestoreSummary {
            files: read(&self.tally.files),
            dirs: read(&self.tally.dirs),
            bytes: read(&self.tally.bytes),
            kept_dirs: read(&self.tally.kept_dirs),
            skipped: read(&self.tally.skipped),
            kept: read(&self.tally.kept),
            notes: self.notes.lines(),
            problems: self.run.problem_count(),
            damaged: self.run.damage_count(),
            ..RestoreSummary::default()
        }
    }
}

/// Adds to a count.
pub(super) fn add(count: &AtomicU64, more: u64) {
    add_bytes(count, more);
}
