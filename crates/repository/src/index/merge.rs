//! Writing runs: from sorted entries, and from two runs that become one.
//!
//! Both stream: memory does not grow with the number of entries, but for one bit each.

use std::cmp::Ordering;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{self, AtomicBool};

use holdall_format::RepositoryId;
use holdall_protocol::RepositoryError;
use holdall_sys::PathBeneath;

use super::bits::Bits;
use super::checksum::page_checksum;
use super::entry::{Entry, prefix};
use super::error::IndexError;
use super::filter::Filter;
use super::page_cache::PAGE_BYTES;
use super::run::{PAGE_ENTRIES, Run, Shape, encode_front, entry_in, page_is_sound, run_path};
use crate::storage::publish::{FILE_MODE, failed, random};

/// Pages read at once while merging.
const READ_PAGES: u64 = 16;

/// A test has no run be written while a file of this name is in the folder.
#[cfg(test)]
pub(crate) const WRITES_FAIL: &str = "writes-fail";

/// Writes a run of exactly `count` entries, which ascend.
pub(crate) fn write_run(
    dir: &PathBeneath,
    repository: &RepositoryId,
    count: u64,
    entries: impl Iterator<Item = Result<Entry, IndexError>>,
) -> Result<Run, IndexError> {
    #[cfg(test)]
    if dir.join(WRITES_FAIL).exists() {
        return Err(failed("making", dir)(std::io::Error::other("a test has it fail")).into());
    }
    let number = u64::from_le_bytes(random()?);
    let path = run_path(dir, number);
    let written = write_file(&path, number, repository, count, entries);
    if written.is_err() {
        // An incomplete run is in nobody's catalogue; it would be swept at the next open anyway.
        let _ = path.remove_file();
    }
    written
}

fn write_file(
    path: &PathBeneath,
    number: u64,
    repository: &RepositoryId,
    count: u64,
    entries: impl Iterator<Item = Result<Entry, IndexError>>,
) -> Result<Run, IndexError> {
    let shape = Shape { entries: count };
    let file = path.create_new(FILE_MODE).map_err(failed("making", path))?;
    let mut out = BufWriter::with_capacity(READ_PAGES as usize * PAGE_BYTES, file);
    let mut fence = Vec::new();
    let mut filter = Filter::for_entries(count);
    let mut page = Vec::with_capacity(PAGE_BYTES);
    let mut written = 0u64;
    out.write_all(&encode_front(number, repository, count)).map_err(failed("writing", path))?;
    for entry in entries {
        let entry = entry?;
        let page_number = written / PAGE_ENTRIES;
        if page.is_empty() && page_number.is_multiple_of(shape.stride()) {
            fence.push(prefix(&entry.id));
        }
        filter.insert(&entry.id);
        page.extend_from_slice(&entry.encode());
        written += 1;
        if written.is_multiple_of(PAGE_ENTRIES) || written == count {
            finish_page(&mut page, number, page_number);
            out.write_all(&page).map_err(failed("writing", path))?;
            page.clear();
        }
    }
    if written != count {
        return Err(IndexError::damaged(path, "it got another number of entries than was said"));
    }
    let mut end: Vec<u8> = fence.iter().flat_map(|first: &u64| first.to_le_bytes()).collect();
    end.extend_from_slice(filter.as_bytes());
    let checksum = blake3::hash(&end);
    end.extend_from_slice(checksum.as_bytes());
    out.write_all(&end).map_err(failed("writing", path))?;
    let file = out.into_inner().map_err(|error| failed("writing", path)(error.into_error()))?;
    Ok(Run::from_parts(number, path.clone(), file, shape, fence, filter))
}

fn finish_page(page: &mut Vec<u8>, run: u64, number: u64) {
    page.resize(PAGE_BYTES - 16, 0);
    let checksum = page_checksum(run, number, page);
    page.extend_from_slice(&checksum);
}

/// Which of two runs each entry of the merged one came from.
pub(crate) struct Merged {
    run: Run,
    /// Set where an entry came from the second run.
    from_second: Bits,
}

/// Merges two runs into a new one whose marks are still clear.
pub(crate) fn merge(
    dir: &PathBeneath,
    repository: &RepositoryId,
    [first, second]: [&Run; 2],
    should_stop: &AtomicBool,
) -> Result<Merged, IndexError> {
    let count = first.shape().entries + second.shape().entries;
    let from_second = Bits::clear(count);
    let mut sides = [RunReader::new(first), RunReader::new(second)];
    let mut at = 0;
    let mut next = || -> Result<Option<Entry>, IndexError> {
        if should_stop.load(atomic::Ordering::Relaxed) {
            return Err(RepositoryError::Interrupted.into());
        }
        let [first, second] = &mut sides;
        let takes_second = match (first.peek()?, second.peek()?) {
            (None, None) => return Ok(None),
            (Some(_), None) => false,
            (None, Some(_)) => true,
            (Some(first), Some(second)) => first.cmp(&second) == Ordering::Greater,
        };
        from_second.put(at, takes_second);
        at += 1;
        Ok(if takes_second { second.take() } else { first.take() })
    };
    let run = write_run(dir, repository, count, std::iter::from_fn(|| next().transpose()))?;
    Ok(Merged { run, from_second })
}

impl Merged {
    /// The merged run with the marks that the two have now; nobody may mark them meanwhile.
    pub(crate) fn with_marks(self, first: &Run, second: &Run) -> Run {
        let (mut at_first, mut at_second) = (0, 0);
        for at in 0..self.run.shape().entries {
            let (run, from) = if self.from_second.get(at) {
                (second, &mut at_second)
            } else {
                (first, &mut at_first)
            };
            if run.closed.get(*from) {
                self.run.closed.put(at, true);
            }
            if run.tentative.get(*from) {
                self.run.tentative.put(at, true);
            }
            *from += 1;
        }
        self.run
    }
}

/// Reads a run from front to back, past the cache.
pub(crate) struct RunReader<'a> {
    run: &'a Run,
    buffer: Vec<u8>,
    /// The page that the buffer starts with.
    buffer_page: u64,
    at: u64,
    next: Option<Entry>,
}

impl<'a> RunReader<'a> {
    pub(crate) fn new(run: &'a Run) -> Self {
        Self { run, buffer: Vec::new(), buffer_page: 0, at: 0, next: None }
    }

    /// Takes the next entry; `None` at the end.
    pub(crate) fn next_entry(&mut self) -> Result<Option<Entry>, IndexError> {
        self.peek()?;
        Ok(self.take())
    }

    /// The next entry, which stays.
    pub(crate) fn peek(&mut self) -> Result<Option<Entry>, IndexError> {
        if self.next.is_none() && self.at < self.run.shape().entries {
            self.next = Some(self.read()?);
            self.at += 1;
        }
        Ok(self.next)
    }

    /// Takes the entry that was peeked at.
    fn take(&mut self) -> Option<Entry> {
        self.next.take()
    }

    fn read(&mut self) -> Result<Entry, IndexError> {
        let page = self.at / PAGE_ENTRIES;
        let held = self.buffer.len() / PAGE_BYTES;
        if page >= self.buffer_page + held as u64 {
            self.fill(page)?;
        }
        let offset = usize::try_from(page - self.buffer_page).unwrap_or(usize::MAX) * PAGE_BYTES;
        self.buffer
            .get(offset..)
            .and_then(|page| entry_in(page, self.at % PAGE_ENTRIES))
            .ok_or_else(|| IndexError::damaged(self.run.path(), "an entry is not there"))
    }

    fn fill(&mut self, page: u64) -> Result<(), IndexError> {
        let count = READ_PAGES.min(self.run.shape().pages() - page);
        self.buffer.resize(count as usize * PAGE_BYTES, 0);
        self.run
            .file()
            .read_exact_at(&mut self.buffer, (page + 1) * PAGE_BYTES as u64)
            .map_err(|error| IndexError::damaged(self.run.path(), error))?;
        self.buffer_page = page;
        for (number, bytes) in (page..).zip(self.buffer.chunks(PAGE_BYTES)) {
            if !page_is_sound(self.run.number(), number, bytes) {
                let reason = format!("page {number} is damaged");
                return Err(IndexError::damaged(self.run.path(), reason));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::manifest::ClosedByArrival;
    use crate::index::page_cache::PageCache;
    use holdall_format::ObjectId;
    use holdall_sys::Root;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const REPOSITORY: RepositoryId = RepositoryId::from_bytes([1; 16]);

    /// Few different ids, so that copies of one id spread over pages.
    fn entry(seed: u16, arrival: u64) -> Entry {
        let id = ObjectId::from_bytes(*blake3::hash(&seed.to_le_bytes()).as_bytes());
        Entry { id, arrival, pack: 3, block: 4 }
    }

    fn run_of(dir: &PathBeneath, entries: &BTreeSet<Entry>) -> Run {
        let sorted = entries.iter().copied().map(Ok);
        write_run(dir, &REPOSITORY, entries.len() as u64, sorted).unwrap()
    }

    fn find(run: &Run, seeds: &[u16]) -> Vec<(usize, Entry)> {
        let mut ids: Vec<_> = seeds.iter().map(|&seed| entry(seed, 0).id).collect();
        ids.sort_unstable();
        let mut found = Vec::new();
        run.find(&PageCache::default(), &ids, &mut |question, _, entry| {
            assert_eq!(ids[question], entry.id);
            found.push((question, entry));
        })
        .unwrap();
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn merged_runs_answer_as_the_set_of_their_entries(
            entries in proptest::collection::vec((0u16..40, 0u64..100_000, any::<bool>()), 1..1500),
            questions in proptest::collection::btree_set(0u16..50, 1..20),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let side = |wanted: bool| -> BTreeSet<Entry> {
                let mine = entries.iter().filter(|(_, _, second)| *second == wanted);
                mine.map(|&(seed, arrival, _)| entry(seed, arrival)).collect()
            };
            let (first, second) = (side(false), side(true));
            let runs = [run_of(&Root::at(dir.path()), &first), run_of(&Root::at(dir.path()), &second)];
            for (at, _) in second.iter().enumerate().step_by(3) {
                runs[1].closed.put(at as u64, true);
            }
            let go_on = AtomicBool::new(false);
            let merged = merge(&Root::at(dir.path()), &REPOSITORY, [&runs[0], &runs[1]], &go_on).unwrap();
            let number = merged.run.number();
            let run = merged.with_marks(&runs[0], &runs[1]);
            let opened = Run::open(&Root::at(dir.path()), number, &REPOSITORY).unwrap();

            let mut all: Vec<Entry> = first.iter().chain(&second).copied().collect();
            all.sort_unstable();
            let mut ids: Vec<_> = questions.iter().map(|&seed| entry(seed, 0).id).collect();
            ids.sort_unstable();
            let mut expected = Vec::new();
            for (question, id) in ids.iter().enumerate() {
                let copies = all.iter().filter(|entry| entry.id == *id);
                expected.extend(copies.map(|entry| (question, *entry)));
            }
            let questions: Vec<u16> = questions.into_iter().collect();
            prop_assert_eq!(&find(&run, &questions), &expected);
            prop_assert_eq!(find(&opened, &questions), expected);
            let closed = (0..all.len() as u64).filter(|&at| run.closed.get(at)).count();
            prop_assert_eq!(closed, second.len().div_ceil(3));
        }

        #[test]
        fn a_damaged_run_gives_right_answers_or_says_so(at: usize, flip in 1u8..) {
            let dir = tempfile::tempdir().unwrap();
            let entries: BTreeSet<_> = (0..300).map(|seed| entry(seed, 1)).collect();
            let run = run_of(&Root::at(dir.path()), &entries);
            let mut bytes = std::fs::read(run.path().path()).unwrap();
            let at = at % bytes.len();
            bytes[at] ^= flip;
            std::fs::write(run.path().path(), bytes).unwrap();
            let Ok(run) = Run::open(&Root::at(dir.path()), run.number(), &REPOSITORY) else { return Ok(()) };
            for entry in &entries {
                let mut found = Vec::new();
                let answer = run.find(&PageCache::default(), &[entry.id], &mut |_, _, entry| {
                    found.push(entry);
                });
                prop_assert!(answer.is_err() || found == [*entry]);
            }
        }
    }

    #[test]
    fn a_run_without_entries_finds_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let run = run_of(&Root::at(dir.path()), &BTreeSet::new());
        assert_eq!(find(&run, &[1, 2]), []);
        assert!(Run::open(&Root::at(dir.path()), run.number(), &REPOSITORY).is_ok());
        assert!(
            Run::open(&Root::at(dir.path()), run.number(), &RepositoryId::from_bytes([2; 16]))
                .is_err()
        );
    }

    #[test]
    fn of_a_block_that_lies_twice_in_a_pack_the_first_copy_is_closed_as_it_was_in_its_tail() {
        let dir = tempfile::tempdir().unwrap();
        let ids: BTreeSet<_> = (0..4).map(|seed| entry(seed, 7).id).collect();
        let twice = |id| [0, 1].map(|block| Entry { id, arrival: 7, pack: 0, block });
        let entries: BTreeSet<Entry> = ids.iter().copied().flat_map(twice).collect();
        let run = run_of(&Root::at(dir.path()), &entries);
        let entries: Vec<Entry> = entries.into_iter().collect();
        // The third object was.
        let mut closed = ClosedByArrival::from([(7, vec![0b0100])]).into();
        super::super::mark_closed(&run, &entries, &mut closed);
        let closed: Vec<u64> = (0..8).filter(|at| run.closed.get(*at)).collect();
        assert_eq!(closed, [4]);
    }
}
