//! Runs: sorted entries in a file that is written once.
//!
//! ```text
//! | front 4096 | page 4096 ... | fence: u64 ... | filter | checksum 32 (fence and filter) |
//! front: | magic "HRun" | version u8 | zero 3 | repository 16 | run u64 | entries u64 | checksum 32 |
//! page:  | 85 entries of 48 | checksum 16 |
//! ```
//!
//! The fence has the first id's first 8 bytes of every page, or of every n-th page where there are
//! more than 65,536, so that memory does not grow with the run.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use holdall_format::wire::Reader;
use holdall_format::{FormatError, ObjectId, RepositoryId};
use holdall_sys::PathBeneath;

use super::bits::Bits;
use super::checksum::page_checksum;
use super::entry::{ENTRY_BYTES, Entry, prefix};
use super::error::IndexError;
use super::filter::Filter;
use super::page_cache::{PAGE_BYTES, Page, PageCache};

const MAGIC: &[u8; 4] = b"HRun";
const VERSION: u8 = 1;
/// What is written of a front before the zeros that fill up its page.
pub(crate) const FRONT_BYTES: usize = 4 + 1 + 3 + 16 + 8 + 8 + 32;
/// Entries in a full page.
pub(crate) const PAGE_ENTRIES: u64 = 85;
const PAGE_ENTRY_BYTES: usize = PAGE_ENTRIES as usize * ENTRY_BYTES;
const MAX_FENCE: u64 = 65_536;

/// An open run.
#[derive(Debug)]
pub(crate) struct Run {
    number: u64,
    path: PathBeneath,
    file: File,
    shape: Shape,
    fence: Vec<u64>,
    filter: Filter,
    /// Entries that commits reached.
    pub(crate) closed: Bits,
    /// Entries that the commit that is running reached.
    pub(crate) tentative: Bits,
}

/// How a run of so many entries is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) entries: u64,
}

impl Shape {
    pub(crate) fn pages(self) -> u64 {
        self.entries.div_ceil(PAGE_ENTRIES)
    }

    /// Pages from one sample of the fence to the next.
    pub(crate) fn stride(self) -> u64 {
        self.pages().div_ceil(MAX_FENCE).max(1)
    }

    fn fence_len(self) -> u64 {
        self.pages().div_ceil(self.stride())
    }

    /// Entries in that page.
    pub(crate) fn entries_in(self, page: u64) -> u64 {
        self.entries.saturating_sub(page * PAGE_ENTRIES).min(PAGE_ENTRIES)
    }

    fn page_at(page: u64) -> u64 {
        (page + 1) * PAGE_BYTES as u64
    }

    fn end_bytes(self) -> u64 {
        self.fence_len() * 8 + Filter::len_bytes(self.entries) as u64 + 32
    }
}

/// The path of a run.
pub(crate) fn run_path(dir: &PathBeneath, number: u64) -> PathBeneath {
    dir.join(format!("run-{number:016x}"))
}

/// The number in a run's file name.
pub(crate) fn run_number(name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_prefix("run-")?, 16).ok()
}

/// The front of a run.
pub(crate) fn encode_front(number: u64, repository: &RepositoryId, entries: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(PAGE_BYTES);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[VERSION, 0, 0, 0]);
    out.extend_from_slice(repository.as_bytes());
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&entries.to_le_bytes());
    let checksum = blake3::hash(&out);
    out.extend_from_slice(checksum.as_bytes());
    out.resize(PAGE_BYTES, 0);
    out
}

pub(crate) fn decode_front(
    bytes: &[u8],
    number: u64,
    repository: &RepositoryId,
) -> Result<u64, FormatError> {
    let mut reader = Reader::new("index run", bytes);
    reader.magic(MAGIC, VERSION)?;
    reader.bytes("zero", 3)?;
    let repository_found = RepositoryId::from_bytes(reader.array("repository")?);
    let number_found = reader.u64("run")?;
    let entries = reader.u64("entries")?;
    let clear = bytes.get(..FRONT_BYTES - 32).unwrap_or_default();
    let is_sound = blake3::hash(clear).as_bytes() == &reader.array::<32>("checksum")?;
    if !is_sound || repository_found != *repository || number_found != number {
        return Err(reader.invalid("front", "of another run or damaged"));
    }
    Ok(entries)
}

/// Whether a page as it was read is the one that was written.
pub(crate) fn page_is_sound(run: u64, number: u64, page: &[u8]) -> bool {
    let (entries, checksum) = page.split_at(PAGE_ENTRY_BYTES.min(page.len()));
    page_checksum(run, number, entries) == checksum
}

/// The entry at a place in a page.
pub(crate) fn entry_in(page: &[u8], at: u64) -> Option<Entry> {
    let (entries, _) = page.get(..PAGE_ENTRY_BYTES)?.as_chunks::<ENTRY_BYTES>();
    entries.get(usize::try_from(at).ok()?).map(Entry::decode)
}

impl Run {
    /// Opens a run and reads its fence and filter; nothing is closed.
    pub(crate) fn open(
        dir: &PathBeneath,
        number: u64,
        repository: &RepositoryId,
    ) -> Result<Self, IndexError> {
        let path = run_path(dir, number);
        let wrong = |reason: &dyn std::fmt::Display| IndexError::damaged(&path, reason);
        let file = path.open().map_err(|error| wrong(&error))?;
        let mut front = [0; FRONT_BYTES];
        file.read_exact_at(&mut front, 0).map_err(|error| wrong(&error))?;
        let entries = decode_front(&front, number, repository).map_err(|error| wrong(&error))?;
        let shape = Shape { entries };
        let length = file.metadata().map_err(|error| wrong(&error))?.len();
        let pages_limit = length / PAGE_BYTES as u64;
        if shape.pages() >= pages_limit.max(1)
            || length != Shape::page_at(shape.pages()) + shape.end_bytes()
        {
            return Err(wrong(&"it has another length than it says"));
        }
        let mut end = vec![0; usize::try_from(shape.end_bytes()).unwrap_or_default()];
        file.read_exact_at(&mut end, Shape::page_at(shape.pages()))
            .map_err(|error| wrong(&error))?;
        let (fence, filter) = split_end(&end, shape).ok_or_else(|| wrong(&"its end is damaged"))?;
        Ok(Self::from_parts(number, path, file, shape, fence, filter))
    }

    pub(crate) fn from_parts(
        number: u64,
        path: PathBeneath,
        file: File,
        shape: Shape,
        fence: Vec<u64>,
        filter: Filter,
    ) -> Self {
        let (closed, tentative) = (Bits::clear(shape.entries), Bits::clear(shape.entries));
        Self { number, path, file, shape, fence, filter, closed, tentative }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    pub(crate) fn path(&self) -> &PathBeneath {
        &self.path
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Puts stored marks in the place of the clear ones.
    pub(crate) fn with_closed(self, closed: Bits) -> Self {
        Self { closed, ..self }
    }

    /// Finds all entries of `ids`, which ascend, and gives each with its question's number and its
    /// own number in the run.
    pub(crate) fn find(
        &self,
        cache: &PageCache,
        ids: &[ObjectId],
        found: &mut dyn FnMut(usize, u64, Entry),
    ) -> Result<(), IndexError> {
        for (question, id) in ids.iter().enumerate() {
            if self.filter.may_have(id) {
                self.find_one(cache, id, &mut |at, entry| found(question, at, entry))?;
            }
        }
        Ok(())
    }

    fn find_one(
        &self,
        cache: &PageCache,
        id: &ObjectId,
        found: &mut dyn FnMut(u64, Entry),
    ) -> Result<(), IndexError> {
        let Some(mut number) = self.first_page(cache, id)? else { return Ok(()) };
        while number < self.shape.pages() {
            let page = self.page(cache, number)?;
            let count = self.shape.entries_in(number);
            let mut at =
                lower_bound(count, |at| entry_in(&page[..], at).is_some_and(|e| e.id < *id));
            while let Some(entry) = entry_in(&page[..], at).filter(|_| at < count) {
                if entry.id != *id {
                    return Ok(());
                }
                found(number * PAGE_ENTRIES + at, entry);
                at += 1;
            }
            number += 1;
        }
        Ok(())
    }

    /// The last page that begins before `id`, or the first page; `None` if `id` is before all.
    fn first_page(&self, cache: &PageCache, id: &ObjectId) -> Result<Option<u64>, IndexError> {
        let prefix = prefix(id);
        let after = self.fence.partition_point(|first| *first <= prefix) as u64;
        if after == 0 {
            return Ok(None);
        }
        let before = self.fence.partition_point(|first| *first < prefix) as u64;
        let mut low = before.saturating_sub(1) * self.shape.stride();
        let mut high = (after * self.shape.stride()).min(self.shape.pages());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let page = self.page(cache, middle)?;
            match entry_in(&page[..], 0) {
                Some(first) if first.id < *id => low = middle,
                _ => high = middle,
            }
        }
        Ok(Some(low))
    }

    fn page(&self, cache: &PageCache, number: u64) -> Result<Arc<Page>, IndexError> {
        cache.get(self.number, number, || {
            #[cfg(test)]
            if cache.reads_fail.load(std::sync::atomic::Ordering::Acquire) {
                return Err(IndexError::damaged(&self.path, "a test has it fail"));
            }
            let mut page = [0; PAGE_BYTES];
            self.file
                .read_exact_at(&mut page, Shape::page_at(number))
                .map_err(|error| IndexError::damaged(&self.path, error))?;
            if !page_is_sound(self.number, number, &page) {
                return Err(IndexError::damaged(&self.path, format!("page {number} is damaged")));
            }
            Ok(Arc::new(page))
        })
    }
}

/// The first of `count` places for which `before` does not hold.
fn lower_bound(count: u64, before: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

fn split_end(end: &[u8], shape: Shape) -> Option<(Vec<u64>, Filter)> {
    let (parts, checksum) = end.split_last_chunk::<32>()?;
    if blake3::hash(parts).as_bytes() != checksum {
        return None;
    }
    let (fence, filter) = parts.split_at_checked(usize::try_from(shape.fence_len()).ok()? * 8)?;
    let (fence, _) = fence.as_chunks::<8>();
    let fence = fence.iter().map(|first| u64::from_le_bytes(*first)).collect();
    Some((fence, Filter::from_bytes(filter.to_vec())))
}
