//! Parts of directories that were listed last, and entries that were asked for: the kernel takes directories in small
//! pieces, and asks for what is in them again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdall_engine::{Children, NumberedEntry};

/// Entries of a page.
pub(crate) const PAGE_ENTRIES: usize = 512;
/// Pages that are kept.
const PAGES_KEPT: usize = 16;
/// Entries that are kept beside them.
const ENTRIES_KEPT: usize = 64;

/// A part of a directory of a snapshot.
pub(crate) struct Page {
    pub(crate) snapshot: usize,
    /// The directory's number.
    pub(crate) directory: u64,
    /// Where it begins; nothing for the beginning of the directory.
    pub(crate) from: Option<u64>,
    pub(crate) children: Children,
}

impl Page {
    /// The first entry that is not before `from`, if the page goes on there.
    fn begins_at(&self, from: Option<u64>) -> Option<usize> {
        if self.from == from {
            return Some(0);
        }
        let entries = &self.children.entries;
        entries.binary_search_by_key(&from?, |entry| entry.number).ok()
    }
}

/// What was looked at last, newest first.
#[derive(Default)]
pub(crate) struct Pages(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    pages: VecDeque<Arc<Page>>,
    /// With the snapshot that each is in.
    entries: VecDeque<(usize, NumberedEntry)>,
}

impl Kept {
    fn of_directory(&self, snapshot: usize, directory: u64) -> impl Iterator<Item = &Arc<Page>> {
        let is_it =
            move |page: &&Arc<Page>| (page.snapshot, page.directory) == (snapshot, directory);
        self.pages.iter().filter(is_it)
    }
}

impl Pages {
    /// The page in which a directory goes on from there, and at which of its entries.
    pub(crate) fn listing(
        &self,
        snapshot: usize,
        directory: u64,
        from: Option<u64>,
    ) -> Option<(Arc<Page>, usize)> {
        let kept = self.lock();
        let mut pages = kept.of_directory(snapshot, directory);
        pages.find_map(|page| page.begins_at(from).map(|at| (Arc::clone(page), at)))
    }

    /// An entry, by its number.
    pub(crate) fn entry(&self, snapshot: usize, number: u64) -> Option<NumberedEntry> {
        let kept = self.lock();
        let is_it =
            |(of, entry): &&(usize, NumberedEntry)| (*of, entry.number) == (snapshot, number);
        if let Some((_, entry)) = kept.entries.iter().find(is_it) {
            return Some(entry.clone());
        }
        kept.pages.iter().filter(|page| page.snapshot == snapshot).find_map(|page| {
            let entries = &page.children.entries;
            let at = entries.binary_search_by_key(&number, |entry| entry.number).ok()?;
            entries.get(at).cloned()
        })
    }

    /// An entry, by its name.
    pub(crate) fn child(
        &self,
        snapshot: usize,
        directory: u64,
        name: &[u8],
    ) -> Option<NumberedEntry> {
        self.lock().of_directory(snapshot, directory).find_map(|page| {
            let entries = &page.children.entries;
            let at = entries.binary_search_by(|entry| entry.name().cmp(name)).ok()?;
            entries.get(at).cloned()
        })
    }

    /// Keeps a part of a directory.
    pub(crate) fn add(&self, page: Arc<Page>) {
        let mut kept = self.lock();
        kept.pages.truncate(PAGES_KEPT - 1);
        kept.pages.push_front(page);
    }

    /// Keeps an entry.
    pub(crate) fn add_one(&self, snapshot: usize, entry: &NumberedEntry) {
        let mut kept = self.lock();
        kept.entries.truncate(ENTRIES_KEPT - 1);
        kept.entries.push_front((snapshot, entry.clone()));
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
