//! What all answers share: the repository, the list of its snapshots, and what could not be read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fuser::Errno;
use holdall_engine::{
    Attributes, EngineError, HardLinks, NumberedEntry, OnDemand, ReadAhead, UnlockedRepository,
};
use holdall_format::ObjectId;

use crate::catalogue::{Catalogue, Known, Numbers};
use crate::failed_reads::{FailedReads, Part};
use crate::pages::{PAGE_ENTRIES, Page, Pages};
use crate::taken::Taken;
use crate::troubles::Troubles;

/// How long the list of snapshots is taken for the newest.
pub(crate) const LISTED_FOR: Duration = Duration::from_secs(3);
/// How long somebody who writes to a directory is waited for: as long as a server that is lost.
const IN_USE_FOR: Duration = Duration::from_secs(300);
/// How often it is looked whether they have ended.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long the repository in a directory is kept from others after the last read.
const DIRECTORY_RESTS_AFTER: Duration = Duration::from_secs(3);
/// How long what a server holds back from deletion is held back after the last read.
const SERVER_RESTS_AFTER: Duration = Duration::from_secs(3600);

/// What all answers share.
pub(crate) struct Shared {
    access: Arc<UnlockedRepository>,
    reading: OnDemand<ReadAhead>,
    listing: Mutex<Listing>,
    /// Held by the one who lists: all others go on meanwhile by what was listed before.
    listing_anew: Mutex<()>,
    pages: Pages,
    failed_reads: FailedReads,
    troubles: Troubles,
}

#[derive(Default)]
struct Listing {
    numbers: Numbers,
    catalogue: Arc<Catalogue>,
    listed_at: Option<Instant>,
}

impl Shared {
    /// Lists the snapshots.
    ///
    /// # Errors
    /// If that cannot be done.
    pub(crate) fn new(
        access: Arc<UnlockedRepository>,
        troubles: Troubles,
    ) -> Result<Self, EngineError> {
        let reading = OnDemand::new(Arc::clone(&access), ReadAhead::open);
        let (listing, listing_anew, pages, failed_reads) = Default::default();
        let shared = Self { access, reading, listing, listing_anew, pages, failed_reads, troubles };
        shared.list()?;
        Ok(shared)
    }

    /// Lets others write to the repository after a while without reads.
    pub(crate) fn rest(&self) {
        let unused = match self.access.is_in_directory() {
            true => DIRECTORY_RESTS_AFTER,
            false => SERVER_RESTS_AFTER,
        };
        self.reading.rest_after(unused);
    }

    /// The folders above the snapshots, as they were listed last.
    pub(crate) fn known_catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.listing().catalogue)
    }

    /// The same as they are now, or were a moment ago; as they were last where nothing can be asked.
    pub(crate) fn catalogue(&self) -> Arc<Catalogue> {
        let listing_anew = self.listing_anew.lock().unwrap_or_else(PoisonError::into_inner);
        if self.listing().listed_at.is_none_or(|at| at.elapsed() >= LISTED_FOR) {
            match self.list() {
                Ok(()) => self.troubles.answered(),
                Err(error) => {
                    self.troubles.away(&error);
                    // Or each name that is looked up would wait for a lost server anew.
                    self.listing().listed_at = Some(Instant::now());
                    self.failed_reads.keep_list();
                }
            }
        }
        drop(listing_anew);
        self.known_catalogue()
    }

    fn list(&self) -> Result<(), EngineError> {
        let listed = holdall_engine::snapshots_by_cache(&self.access)?;
        let taken: Vec<_> = listed.snapshots.iter().map(Taken::from).collect();
        let mut listing = self.listing();
        let listing = &mut *listing;
        listing.catalogue = Arc::new(listing.numbers.catalogue(&taken));
        listing.listed_at = Some(Instant::now());
        Ok(())
    }

    fn listing(&self) -> MutexGuard<'_, Listing> {
        self.listing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of a snapshot since it was listed first.
    pub(crate) fn known(&self, snapshot: usize) -> Result<Known, Errno> {
        self.listing().numbers.snapshots.get(snapshot).cloned().ok_or(Errno::ENOENT)
    }

    /// Asks something of a snapshot, once nobody writes to its directory; `path` is what it is about.
    fn ask<T>(
        &self,
        snapshot: usize,
        path: impl Fn() -> Vec<u8>,
        question: impl Fn(&ReadAhead, ObjectId) -> Result<T, EngineError>,
    ) -> Result<T, Errno> {
        let (root, asked_at) = (self.known(snapshot)?.root, Instant::now());
        loop {
            let answer = self.reading.get().and_then(|reading| question(&reading, root));
            match answer {
                Ok(answer) => {
                    self.troubles.answered();
                    return Ok(answer);
                }
                Err(error) if error.is_in_use() && asked_at.elapsed() < IN_USE_FOR => {
                    sleep(LOOK_EVERY);
                }
                Err(error) => {
                    self.failed(snapshot, path, &error);
                    return Err(Errno::EIO);
                }
            }
        }
    }

    /// Tells why what is at a path of a snapshot cannot be had.
    fn failed(&self, snapshot: usize, path: impl Fn() -> Vec<u8>, error: &EngineError) {
        if !error.is_damage() {
            return self.troubles.away(error);
        }
        let Ok(known) = self.known(snapshot) else { return };
        let shown = path_in(&known, &path());
        if self.catalogue().has(snapshot) {
            self.troubles.at(&shown, &error.to_string(), true);
        } else {
            let reason = "its snapshot was forgotten, and what only that had is deleted";
            self.troubles.at(&shown, reason, false);
        }
    }

    /// An entry of a snapshot.
    pub(crate) fn entry(&self, snapshot: usize, number: u64) -> Result<NumberedEntry, Errno> {
        if let Some(entry) = self.pages.entry(snapshot, number) {
            return Ok(entry);
        }
        let top = || b"/".to_vec();
        let entry =
            self.ask(snapshot, top, |reading, root| reading.viewer().numbered(root, number))?;
        self.pages.add_one(snapshot, &entry);
        Ok(entry)
    }

    /// What has that name in a directory of a snapshot.
    pub(crate) fn child(
        &self,
        snapshot: usize,
        directory: u64,
        name: &[u8],
    ) -> Result<Option<NumberedEntry>, Errno> {
        if let Some(entry) = self.pages.child(snapshot, directory, name) {
            return Ok(Some(entry));
        }
        let above = self.entry(snapshot, directory)?.path;
        let path = || [above.strip_suffix(b"/").unwrap_or(&above), b"/", name].concat();
        let found =
            self.ask(snapshot, path, |reading, root| reading.viewer().child(root, &above, name))?;
        if let Some(entry) = &found {
            self.pages.add_one(snapshot, entry);
        }
        Ok(found)
    }

    /// The page in which a directory goes on from there, and at which of its entries.
    pub(crate) fn page(
        &self,
        snapshot: usize,
        directory: u64,
        from: Option<u64>,
    ) -> Result<(Arc<Page>, usize), Errno> {
        if let Some(found) = self.pages.listing(snapshot, directory, from) {
            return Ok(found);
        }
        let path = self.entry(snapshot, directory)?.path;
        let children = self.ask(
            snapshot,
            || path.clone(),
            |reading, root| reading.viewer().children(root, &path, from, PAGE_ENTRIES),
        )?;
        if let Some(damage) = &children.damage {
            self.failed(snapshot, || path.clone(), damage);
        }
        let page = Arc::new(Page { snapshot, directory, from, children });
        self.pages.add(Arc::clone(&page));
        Ok((page, 0))
    }

    /// Whether something in a directory could not be listed.
    pub(crate) fn lacks_entries(&self, snapshot: usize, directory: u64) -> Result<bool, Errno> {
        let path = self.entry(snapshot, directory)?.path;
        Ok(self.troubles.was_told(&path_in(&self.known(snapshot)?, &path)))
    }

    /// Which names of a snapshot are names of one file.
    pub(crate) fn hard_links(&self, snapshot: usize) -> Result<Arc<HardLinks>, Errno> {
        let top = || b"/".to_vec();
        self.ask(snapshot, top, |reading, root| reading.viewer().hard_links(root))
    }

    /// A piece of a file.
    pub(crate) fn read(
        &self,
        snapshot: usize,
        number: u64,
        offset: u64,
        len: usize,
    ) -> Result<Vec<u8>, Errno> {
        let part = Part { snapshot, number, offset, len };
        if self.failed_reads.take(&part) {
            return Err(Errno::EIO);
        }
        if self.failed_reads.take_list() {
            self.failed_reads.keep(part);
            return Err(Errno::EIO);
        }
        let path = || self.entry(snapshot, number).map(|found| found.path).unwrap_or_default();
        self.ask(snapshot, path, |reading, root| reading.read(root, number, offset, len))
            .inspect_err(|_| self.failed_reads.keep(part))
    }

    /// Where the next data of a file begins, or its next hole.
    pub(crate) fn next(
        &self,
        snapshot: usize,
        number: u64,
        offset: u64,
        is_data: bool,
    ) -> Result<Option<u64>, Errno> {
        let path = || self.entry(snapshot, number).map(|found| found.path).unwrap_or_default();
        self.ask(snapshot, path, |reading, root| reading.next(root, number, offset, is_data))
    }

    /// The extended attributes of an entry.
    pub(crate) fn attributes(
        &self,
        snapshot: usize,
        found: &NumberedEntry,
    ) -> Result<Attributes, Errno> {
        self.ask(
            snapshot,
            || found.path.clone(),
            |reading, _| reading.viewer().attributes(&found.path, found.entry.clone()),
        )
    }
}

/// A path of a snapshot below the folder that is mounted.
fn path_in(known: &Known, path: &[u8]) -> Vec<u8> {
    let path = if path == b"/" { b"" } else { path };
    [b"snapshots/", known.name.as_bytes(), path].concat()
}
