//! The walk over two trees at once.

use std::cmp::Ordering;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use holdall_sys::{Dir, FileKind, Listing, Name, Stat, Timestamp, thread, xattr};

use super::content::{Buffers, Content};
use super::entry::{LinkGroups, Rights, attributes_at};
use super::{CompareOptions, CompareReport};
use crate::run::lock;
use crate::{EngineError, Run};

/// A file system's clock may lag behind that of whoever says when the backup began.
const SLACK_SECONDS: i64 = 2;

/// One directory of both trees, held open.
pub(super) struct Pair {
    pub(super) source: Dir,
    pub(super) restored: Dir,
    /// Below the compared directories; empty for themselves.
    pub(super) path: Vec<u8>,
}

/// A directory that waits to be compared; its parent stays open until then.
struct Pending {
    parent: Arc<Pair>,
    name: Box<[u8]>,
}

/// What the threads share: directories to do, and how many are at work on one.
#[derive(Default)]
struct Queue {
    pending: Vec<Pending>,
    working: usize,
}

/// A thread that is at work on a directory: others wait for what it may yet find.
struct Working<'a, 'b>(&'a Comparison<'b>);

impl Drop for Working<'_, '_> {
    fn drop(&mut self) {
        lock(&self.0.queue).working -= 1;
        self.0.changed.notify_all();
    }
}

pub(super) struct Comparison<'a> {
    source_path: Vec<u8>,
    options: CompareOptions<'a>,
    recent: Timestamp,
    rights: Rights,
    run: &'a Run,
    links: LinkGroups,
    queue: Mutex<Queue>,
    changed: Condvar,
    report: Mutex<CompareReport>,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(
        source: &Path,
        options: CompareOptions<'a>,
        rights: Rights,
        run: &'a Run,
    ) -> Self {
        let since = options.since;
        Self {
            source_path: source.as_os_str().as_bytes().to_vec(),
            options,
            recent: Timestamp { secs: since.secs.saturating_sub(SLACK_SECONDS), ..since },
            rights,
            run,
            links: LinkGroups::default(),
            queue: Mutex::default(),
            changed: Condvar::new(),
            report: Mutex::default(),
        }
    }

    pub(super) fn into_report(self) -> CompareReport {
        let mut report = self.report.into_inner().unwrap_or_else(PoisonError::into_inner);
        report.identical = report.difference_count == 0;
        report
    }

    /// Compares the two directories and everything below them.
    pub(super) fn walk(&self, top: Pair, threads: usize) -> Result<(), EngineError> {
        self.compare_directories_themselves(&top);
        lock(&self.queue).working = 1;
        self.compare_directory(Arc::new(top), &mut Buffers::new());
        lock(&self.queue).working = 0;
        std::thread::scope(|scope| {
            for _ in 1..threads {
                // Without it, this one does all.
                let _ = thread::start(scope, || self.work());
            }
            self.work();
        });
        self.run.check()
    }

    /// Takes the newest directory until none is left and none can come: depth first, so that few
    /// are held open.
    fn work(&self) {
        let mut buffers = Buffers::new();
        loop {
            let next = {
                let mut queue = lock(&self.queue);
                while queue.pending.is_empty() && queue.working > 0 {
                    queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                }
                let Some(next) = queue.pending.pop() else {
                    self.changed.notify_all();
                    return;
                };
                queue.working += 1;
                next
            };
            let _working = Working(self);
            if !self.run.stopping()
                && let Some(pair) = self.open(&next)
            {
                drop(next);
                self.compare_directories_themselves(&pair);
                self.compare_directory(Arc::new(pair), &mut buffers);
            }
        }
    }

    fn open(&self, next: &Pending) -> Option<Pair> {
        let path = joined(&next.parent.path, &next.name);
        let name = Name::new(&next.name).ok()?;
        let source = match next.parent.source.open_child(name) {
            Ok(dir) => dir,
            Err(error) => {
                self.source_failed(path, &error);
                return None;
            }
        };
        match next.parent.restored.open_child(name) {
            Ok(restored) => Some(Pair { source, restored, path }),
            Err(error) => {
                lock(&self.report).differs(path, format!("cannot be opened: {error}"));
                None
            }
        }
    }

    /// Attributes of the two directories; for the top, which no listing holds, metadata too.
    fn compare_directories_themselves(&self, pair: &Pair) {
        let compare = || -> io::Result<Vec<String>> {
            let (source, restored) = (pair.source.stat_self()?, pair.restored.stat_self()?);
            let mut found = self.rights.differences(&source, &restored);
            let (left, right) = (xattr::read_fd(&pair.source)?, xattr::read_fd(&pair.restored)?);
            found.extend(self.rights.attribute_difference(&left, &right));
            Ok(found)
        };
        lock(&self.report).items += 1;
        self.run.advance(1, 0);
        let path = || pair.path.clone();
        match compare() {
            Ok(found) if found.is_empty() => {}
            Ok(found) => self.judge(path(), found, || pair.source.stat_self()),
            Err(error) => lock(&self.report).differs(path(), error.to_string()),
        }
    }

    /// Compares two listings, as a merge of two sorted lists.
    fn compare_directory(&self, pair: Arc<Pair>, buffers: &mut Buffers) {
        let source = match pair.source.entries() {
            Ok(listing) => listing,
            Err(error) => return self.source_failed(pair.path.clone(), &error),
        };
        let restored = match pair.restored.entries() {
            Ok(listing) => listing,
            Err(error) => {
                return lock(&self.report).differs(pair.path.clone(), error.to_string());
            }
        };
        let mut tally = Tally::default();
        let mut subdirectories = Vec::new();
        merge(&source, &restored, |name, sides| {
            if self.run.stopping() || (self.options.left_out)(&self.absolute(&pair.path, name)) {
                return;
            }
            match sides {
                Sides::Both => {
                    if self.compare_entry(&pair, name, buffers, &mut tally) {
                        subdirectories.push(Box::from(name.as_bytes()));
                    }
                }
                Sides::Source => self.only_in_source(&pair, name),
                Sides::Restored => {
                    let path = joined(&pair.path, name.as_bytes());
                    let what = vec!["is not in the source".to_owned()];
                    self.judge(path, what, || pair.source.stat_self());
                }
            }
        });
        self.run.advance(tally.items, tally.bytes);
        let mut report = lock(&self.report);
        report.items += tally.items;
        report.bytes = report.bytes.saturating_add(tally.bytes);
        drop(report);
        let pending =
            subdirectories.into_iter().map(|name| Pending { parent: Arc::clone(&pair), name });
        lock(&self.queue).pending.extend(pending);
        self.changed.notify_all();
    }

    /// Compares one entry that both have; true for a directory, which is compared later.
    fn compare_entry(
        &self,
        pair: &Pair,
        name: Name<'_>,
        buffers: &mut Buffers,
        tally: &mut Tally,
    ) -> bool {
        let path = || joined(&pair.path, name.as_bytes());
        let source = match pair.source.stat(name) {
            Ok(stat) => stat,
            Err(error) => {
                self.source_failed(path(), &error);
                return false;
            }
        };
        let compared = pair.restored.stat(name).and_then(|restored| {
            if source.kind == FileKind::Dir && restored.kind == FileKind::Dir {
                return Ok(None);
            }
            tally.items += 1;
            self.compare_two(pair, name, [&source, &restored], buffers, tally).map(Some)
        });
        match compared {
            Ok(None) => return true,
            Ok(Some(found)) if found.is_empty() => {}
            Ok(Some(found)) => self.judge(path(), found, || pair.source.stat(name)),
            Err(error) => self.judge(path(), vec![error.to_string()], || pair.source.stat(name)),
        }
        false
    }

    /// Everything in which two entries that are not both directories differ.
    fn compare_two(
        &self,
        pair: &Pair,
        name: Name<'_>,
        [source, restored]: [&Stat; 2],
        buffers: &mut Buffers,
        tally: &mut Tally,
    ) -> io::Result<Vec<String>> {
        let mut found = self.rights.differences(source, restored);
        if source.kind != restored.kind {
            return Ok(found);
        }
        if !self.links.fits(source, restored) {
            found.push("hard links join other names".to_owned());
        }
        if source.kind == FileKind::File {
            let (left, _) = pair.source.open_file(name)?;
            let (right, _) = pair.restored.open_file(name)?;
            let attributes = [xattr::read_fd(&left)?, xattr::read_fd(&right)?];
            found.extend(self.rights.attribute_difference(&attributes[0], &attributes[1]));
            if source.size == restored.size {
                match buffers.compare(&left, &right, source.size)? {
                    Content::Same(bytes) => tally.bytes = tally.bytes.saturating_add(bytes),
                    Content::DiffersAt(offset) => {
                        found.push(format!("content, at or after byte {offset}"));
                    }
                }
            }
            return Ok(found);
        }
        let attributes = [attributes_at(&pair.source, name)?, attributes_at(&pair.restored, name)?];
        found.extend(self.rights.attribute_difference(&attributes[0], &attributes[1]));
        if source.kind == FileKind::Symlink
            && pair.source.read_link(name)? != pair.restored.read_link(name)?
        {
            found.push("the link's target".to_owned());
        }
        Ok(found)
    }

    fn only_in_source(&self, pair: &Pair, name: Name<'_>) {
        let path = joined(&pair.path, name.as_bytes());
        let stat = match pair.source.stat(name) {
            Ok(stat) => stat,
            Err(error) => return self.source_failed(path, &error),
        };
        if self.rights.can_be_absent(&stat) {
            return;
        }
        let denied = match stat.kind {
            FileKind::File => pair.source.open_file(name).err(),
            FileKind::Dir => pair.source.open_child(name).err(),
            _ => None,
        };
        match denied {
            Some(error) => self.source_failed(path, &error),
            None => self.judge(path, vec!["was not restored".to_owned()], || Ok(stat)),
        }
    }

    /// Tells a difference from a change: the source is looked at again.
    fn judge(&self, path: Vec<u8>, what: Vec<String>, look: impl FnOnce() -> io::Result<Stat>) {
        match look() {
            Ok(stat) if stat.ctime < self.recent && stat.mtime < self.recent => {
                lock(&self.report).differs(path, what.join("; "));
            }
            Ok(_) => lock(&self.report).changed(path),
            Err(error) => self.source_failed(path, &error),
        }
    }

    fn source_failed(&self, path: Vec<u8>, error: &io::Error) {
        let mut report = lock(&self.report);
        match error.kind() {
            io::ErrorKind::NotFound => report.changed(path),
            io::ErrorKind::PermissionDenied => report.not_readable(path),
            _ => report.differs(path, format!("the source cannot be read: {error}")),
        }
    }

    fn absolute(&self, directory: &[u8], name: Name<'_>) -> Vec<u8> {
        let base = self.source_path.strip_suffix(b"/").unwrap_or(&self.source_path);
        [base, b"/", &joined(directory, name.as_bytes())].concat()
    }
}

/// What one directory adds to the report.
#[derive(Default)]
struct Tally {
    items: u64,
    bytes: u64,
}

/// On which sides a name is.
enum Sides {
    Both,
    Source,
    Restored,
}

fn merge(source: &Listing, restored: &Listing, mut each: impl FnMut(Name<'_>, Sides)) {
    let (mut left, mut right) = (source.iter().peekable(), restored.iter().peekable());
    loop {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(one), Some(other)) => one.name().cmp(&other.name()),
        };
        let one = if order.is_le() { left.next() } else { None };
        let other = if order.is_ge() { right.next() } else { None };
        match (one, other) {
            (Some(entry), Some(_)) => each(entry.name(), Sides::Both),
            (Some(entry), None) => each(entry.name(), Sides::Source),
            (None, Some(entry)) => each(entry.name(), Sides::Restored),
            (None, None) => return,
        }
    }
}

fn joined(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() { name.to_vec() } else { [directory, b"/", name].concat() }
}
