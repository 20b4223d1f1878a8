//! Files get their last mode, and the place of what they replace, when they are on the disk.
//!
//! Length, time and mode of a file may outlive a power cut that its content does not: a journal writes those first.
//! What is finished is believed by the next restore, so nothing looks finished ([`unfinished`](super::unfinished))
//! before one call had the disk take everything that was written. That call costs as much for thousands of files
//! as for one, so they wait for it together.
//!
//! ```text
//! writers ── whole files ──> one thread: a batch, syncfs ──> mode, close, name ──> directories
//! ```
//!
//! A file whose batch cannot be written is reported, and stays unfinished; so is one that was being written
//! meanwhile, for the system tells of each error once. A directory that has files here is finished after them.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex};

use crossbeam_channel::{Receiver, Sender};
use holdall_meter::StageMeter;
use holdall_sys::{Name, disk, limits, raw_file, stat, thread};

use super::attributes::{Last, Subject};
use super::content;
use super::context::{Context, add};
use super::directory::Directory;
use super::links::Membership;
use super::place::Place;
use crate::run::lock;

/// Content that waits for one call; the system writes most of it before.
const BATCH_BYTES: u64 = 1 << 30;
/// Names that wait for one call, each with a file and perhaps a directory that is open.
const BATCH_NAMES: u64 = 8192;
/// The same on a file system where another computer or process holds what is open, and may hold few.
const SHARE_BATCH_NAMES: u64 = 64;
/// Open files that are left to all else.
const OTHER_FILES: u64 = 256;
/// Open files for each name of a batch: it and its directory, here and on the way here.
const FILES_PER_NAME: u64 = 4;
/// Threads that give a batch their modes and names: a call or two for each, of a disk or of another computer.
const THREADS: usize = 4;

/// A name that is made, and whole; what it names is finished, and takes its place, when it is on the disk.
pub(super) struct Whole<'a> {
    pub(super) directory: Directory<'a>,
    pub(super) name: Box<[u8]>,
    pub(super) place: Place,
    /// Nothing for one more name of a file that came before.
    pub(super) file: Option<(Arc<File>, Last)>,
    pub(super) bytes: u64,
    pub(super) membership: Membership,
    /// How many calls had failed when it was begun.
    pub(super) since: u64,
}

impl<'a> Whole<'a> {
    /// Has it wait for its batch. Later members of its group find it from now on.
    pub(super) fn wait_in(self, settle: &Sender<Self>, context: &Context<'_>) {
        if let Place::Beside(name) = &self.place {
            let path = self.directory.path_below_target(name.as_bytes());
            context.links.first_is_beside(self.membership, path);
        }
        // Whoever takes them ends last.
        let _ = settle.send(self);
    }

    /// Finishes it, unless it may be lost.
    fn settle(mut self, context: &Context<'_>, failed: Option<&io::Error>) {
        let earlier = io::Error::other("an earlier write to its disk failed");
        let is_of_a_failed_file = self.file.is_none() && context.links.has_failed(self.membership);
        let has_failed = is_of_a_failed_file || self.since != context.failed_syncs();
        if let Some(error) = failed.or(has_failed.then_some(&earlier)) {
            let what = "it may not be on the disk and stays unfinished: check the disk and restore it \
                        again with --overwrite";
            context.write_failed(self.path(), what, error);
            return self.leave_unfinished(context);
        }
        match self.finish(context) {
            Ok(()) => add(&context.tally.files, 1),
            Err((what, error)) => context.write_failed(self.path(), what, &error),
        }
    }

    fn path(&self) -> Vec<u8> {
        self.directory.path(&self.name)
    }

    /// Gives it its own name first, and then the mode: what is beside another never looks finished.
    fn finish(&mut self, context: &Context<'_>) -> Result<(), (&'static str, io::Error)> {
        let (Some(open), Ok(name)) = (self.directory.open(), Name::new(&self.name)) else {
            return Ok(());
        };
        let place = &self.place;
        if let (Some((file, _)), Place::Beside(_)) = (&self.file, place) {
            content::tell_closed(context, file).map_err(|error| {
                context.links.fail_first(self.membership, || place.remove(open.dir, name));
                ("it cannot be written", error)
            })?;
        }
        let kept = context.links.keep_first(self.membership, || place.keep(open.dir, name));
        kept.map_err(|error| ("it cannot be made", error))?;
        let Some((file, last)) = self.file.take() else { return Ok(()) };
        last.apply(context, Subject::Open(file.as_fd()), &|| self.path());
        content::close(context, file).map_err(|error| {
            context.links.fail_first(self.membership, || place.remove(open.dir, name));
            ("it cannot be written", error)
        })
    }

    /// At its own name it tells of itself; beside what it was to replace it is of no use.
    fn leave_unfinished(self, context: &Context<'_>) {
        if let Some((file, _)) = &self.file {
            context.let_go(file);
        }
        context.leave_unfinished();
        context.links.fail_first(self.membership, || {
            if let (Place::Beside(_), Some(open), Ok(name)) =
                (&self.place, self.directory.open(), Name::new(&self.name))
            {
                self.place.remove(open.dir, name);
            }
        });
    }
}

/// Takes whole files, and finishes them by the batch.
pub(super) struct Settler<'a> {
    context: &'a Context<'a>,
    batch_names: usize,
    meter: &'a StageMeter,
    file_systems: FileSystems,
}

impl<'a> Settler<'a> {
    /// A settler of the files below `target`.
    ///
    /// # Errors
    /// If the target cannot be looked at.
    pub(super) fn new(
        context: &'a Context<'a>,
        target: &Path,
        meter: &'a StageMeter,
    ) -> io::Result<Self> {
        // What waits is held open, as is a chain of directories from its top to its end; if the system grants no
        // more descriptors, less of both still works.
        let open_files = limits::raise_open_files().ok().flatten();
        let is_share = disk::file_system(target).is_ok_and(disk::is_share);
        let batch_names = batch_names(is_share, open_files);
        let file_systems = FileSystems::new(context.root.as_fd())?;
        Ok(Self { context, batch_names, meter, file_systems })
    }

    /// How many names it finishes at once.
    pub(super) fn batch_names(&self) -> usize {
        self.batch_names
    }

    /// Finishes what comes until nobody sends any more, and has the disk take names and modes, too.
    pub(super) fn run(&mut self, whole: &Receiver<Whole<'a>>) {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Ok(one) = self.meter.waiting_in(|| whole.recv()) {
            bytes = one.bytes.saturating_add(bytes);
            batch.push(one);
            if bytes >= BATCH_BYTES || batch.len() >= self.batch_names {
                self.settle(std::mem::take(&mut batch));
                bytes = 0;
            }
        }
        self.settle(batch);
        if self.context.options.dry_run {
            return;
        }
        if let Err(error) = self.meter.working(|| self.file_systems.sync()) {
            self.context.not_synced(error);
        }
    }

    fn settle(&mut self, batch: Vec<Whole<'a>>) {
        if batch.is_empty() {
            return;
        }
        let meter = self.meter;
        meter.working(|| {
            let failed = self.file_systems.sync_those_of(&batch).err();
            if failed.is_some() {
                self.context.sync_failed();
            }
            let (files, links): (Vec<_>, Vec<_>) =
                batch.into_iter().partition(|one| one.file.is_some());
            self.settle_each(files, failed.as_ref());
            // A name of a file that failed fails, too.
            self.settle_each(links, failed.as_ref());
        });
    }

    fn settle_each(&self, batch: Vec<Whole<'a>>, failed: Option<&io::Error>) {
        let (context, threads) = (self.context, batch.len().min(THREADS));
        let batch = &Mutex::new(batch);
        let settle = move || {
            while let Some(one) = { lock(batch).pop() } {
                one.settle(context, failed);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                // Without it, the others do its share.
                let _ = thread::start(scope, settle);
            }
            settle();
        });
    }
}

/// How many names wait for one call.
fn batch_names(is_share: bool, open_files: Option<u64>) -> usize {
    let most = if is_share { SHARE_BATCH_NAMES } else { BATCH_NAMES };
    let may_be_open = open_files.unwrap_or(u64::MAX).saturating_sub(OTHER_FILES);
    usize::try_from((may_be_open / FILES_PER_NAME).clamp(1, most)).unwrap_or(1)
}

/// The file systems below the target, by what was opened on each before any of its files was written: an error is
/// told to those who were there before it.
pub(super) struct FileSystems {
    open: Vec<(u64, OwnedFd)>,
}

impl FileSystems {
    pub(super) fn new(target: BorrowedFd<'_>) -> io::Result<Self> {
        let device = stat::of_fd(target)?.device;
        Ok(Self { open: vec![(device, target.try_clone_to_owned()?)] })
    }

    /// Has every disk that has some of these keep all that it was sent.
    fn sync_those_of(&mut self, batch: &[Whole<'_>]) -> io::Result<()> {
        let mut devices = BTreeSet::new();
        for (file, _) in batch.iter().filter_map(|one| one.file.as_ref()) {
            let device = stat::of_fd(file)?.device;
            devices.insert(device);
            if self.open.iter().all(|(known, _)| *known != device) {
                self.open.push((device, file.as_fd().try_clone_to_owned()?));
            }
        }
        match self.sync_some(|device| devices.contains(&device)) {
            // One by one where a sandbox hides the call that does all at once.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                let files = batch.iter().filter_map(|one| one.file.as_ref());
                files.map(|(file, _)| file.sync_all()).fold(Ok(()), io::Result::and)
            }
            synced => synced,
        }
    }

    /// The same of all.
    fn sync(&self) -> io::Result<()> {
        match self.sync_some(|_| true) {
            // Of the files it is known by then.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                raw_file::sync_all_file_systems();
                Ok(())
            }
            synced => synced,
        }
    }

    fn sync_some(&self, is_used: impl Fn(u64) -> bool) -> io::Result<()> {
        let used = self.open.iter().filter(|(device, _)| is_used(*device));
        used.map(|(_, fd)| raw_file::sync_file_system(fd)).fold(Ok(()), io::Result::and)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_leaves_files_for_all_else_and_holds_few_on_a_share() {
        assert_eq!(batch_names(false, None), 8192);
        assert_eq!(batch_names(false, Some(1024)), 192);
        assert_eq!(batch_names(false, Some(64)), 1);
        assert_eq!(batch_names(true, Some(1024)), 64);
    }
}
