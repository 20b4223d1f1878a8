//! Files too large for one window: written chunk by chunk, by whichever writer has the next one.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use crossbeam_channel::Sender;
use holdall_sys::Name;
use holdall_tree::Entry;

use super::attributes::{Finish, Subject};
use super::content::Filling;
use super::context::{Context, add};
use super::directory::Directory;
use super::layout::Layout;
use super::links::Membership;
use super::place::{self, Made, Place};
use super::settle::Whole;
use super::unfinished;
use crate::run::lock;

/// A file that is written in pieces. The last one to let go of it finishes it: with its metadata if
/// every byte was written, else it is removed and what it was to replace stays.
pub(super) struct SplitFile<'a> {
    context: &'a Context<'a>,
    directory: Directory<'a>,
    name: Box<[u8]>,
    entry: Entry,
    layout: Layout,
    membership: Membership,
    /// Nothing inside if it cannot be made or is not to be replaced.
    file: OnceLock<Option<Target>>,
    /// What is there is kept, and is what the snapshot has.
    is_stored: AtomicBool,
    written_bytes: AtomicU64,
    /// Something was wrong and was reported.
    failed: AtomicBool,
    /// Where it goes when it is whole.
    settle: Sender<Whole<'a>>,
}

/// What the pieces are written to.
struct Target {
    file: Arc<File>,
    place: Place,
    /// How many syncs had failed when it was begun.
    since: u64,
    /// Held by who writes. The system lets only one write to a file at a time, and on several cores
    /// the others would burn theirs meanwhile.
    writing: Mutex<()>,
}

impl<'a> SplitFile<'a> {
    pub(super) fn new(
        context: &'a Context<'a>,
        directory: Directory<'a>,
        name: &[u8],
        entry: Entry,
        layout: Layout,
        membership: Membership,
        settle: Sender<Whole<'a>>,
    ) -> Self {
        Self {
            context,
            directory,
            name: name.into(),
            entry,
            layout,
            membership,
            file: OnceLock::new(),
            is_stored: AtomicBool::new(false),
            written_bytes: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            settle,
        }
    }

    /// Writes one chunk at its place in the content.
    pub(super) fn write(&self, position: u64, chunk: &Result<Bytes, String>) {
        if self.failed.load(Ordering::Relaxed) {
            return;
        }
        let Some(target) = self.file.get_or_init(|| self.create()) else { return };
        let written = match chunk {
            Ok(bytes) => {
                let _turn = lock(&target.writing);
                self.filling(&target.file, &|| self.path()).write(position, bytes)
            }
            Err(reason) => return self.fail(|path| self.context.run.damage(&path, reason)),
        };
        match written {
            Ok(bytes) => {
                self.written_bytes.fetch_add(bytes, Ordering::Relaxed);
            }
            Err(error) => {
                self.fail(|path| self.context.write_failed(path, "it cannot be written", &error));
            }
        }
    }

    /// Says that the rest of its content will never come; why was reported.
    pub(super) fn give_up(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    fn create(&self) -> Option<Target> {
        let Some(open) = self.directory.open() else {
            add(&self.context.tally.skipped, 1);
            return None;
        };
        let since = self.context.failed_syncs();
        let made = Name::new(&self.name).map_err(io::Error::from).and_then(|name| {
            let create = |name: Name<'_>| open.dir.create_file(name, unfinished::MODE);
            place::make(self.context, &open, name, &self.entry, create)
        });
        match made {
            Ok(Made::New(file, place)) => {
                let (file, writing) = (Arc::new(file), Mutex::default());
                return Some(Target { file, place, since, writing });
            }
            Ok(Made::Kept { is_stored }) => {
                self.is_stored.store(is_stored, Ordering::Relaxed);
                add(&self.context.tally.skipped, 1);
            }
            Err(error) => {
                self.fail(|path| self.context.write_failed(path, "it cannot be made", &error));
            }
        }
        None
    }

    fn path(&self) -> Vec<u8> {
        self.directory.path(&self.name)
    }

    fn filling<'f>(&'f self, file: &'f Arc<File>, path: &'f dyn Fn() -> Vec<u8>) -> Filling<'f> {
        Filling { context: self.context, file, layout: &self.layout, path }
    }

    /// Reports the first thing that is wrong.
    fn fail(&self, report: impl FnOnce(Vec<u8>)) {
        if !self.failed.swap(true, Ordering::Relaxed) {
            report(self.path());
        }
    }

    /// Sets its metadata but the last, and has it wait for its batch; false if it is not whole.
    fn finish(&self, Target { file, place, since, .. }: Target) -> bool {
        let (context, entry) = (self.context, &self.entry);
        let Some(open) = self.directory.open() else { return false };
        let Ok(name) = Name::new(&self.name) else { return false };
        let whole = self.written_bytes.load(Ordering::Relaxed) == entry.content.len_bytes();
        if !whole || self.failed.load(Ordering::Relaxed) {
            if !context.stopping() {
                self.fail(|path| context.run.damage(&path, "its content is not whole"));
            }
            place.discard(context, &file, open.dir, name);
            return false;
        }
        let path = || self.path();
        if let Err(error) = self.filling(&file, &path).set_size(entry.size) {
            self.fail(|path| context.write_failed(path, "its size cannot be set", &error));
            place.discard(context, &file, open.dir, name);
            return false;
        }
        let subject = Subject::Open(file.as_fd());
        let (pristine, device) = (open.pristine, open.device);
        let last =
            Finish { context, subject, entry, pristine, device, path: &path }.apply_but_last();
        let (directory, name, bytes) =
            (self.directory.clone(), self.name.clone(), entry.counted_bytes());
        let (file, membership) = (Some((file, last)), self.membership);
        Whole { directory, name, place, file, bytes, membership, since }
            .wait_in(&self.settle, context);
        true
    }
}

impl Drop for SplitFile<'_> {
    fn drop(&mut self) {
        let target = self.file.take().flatten();
        let made = match target {
            Some(target) => self.finish(target),
            None => self.is_stored.load(Ordering::Relaxed),
        };
        self.context.run.advance(1, 0);
        self.context.links.first_is_done(self.membership, made);
    }
}
