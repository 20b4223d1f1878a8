//! The index: where each object is, and which objects are closed.
//!
//! ```text
//! tails (in memory)   run   run      run                   entries of closed packs, sorted by id
//!                     |bits |bits    |bits                 one bit for each: closed
//! ```
//!
//! Everything here is derived from footers, journals and records, and can be deleted at any time.
//! A lookup sorts its ids and goes through every run once, so that a page is touched once for each
//! batch. Runs of about the same size are merged in the background, so that there are few. Memory
//! that grows with the number of objects: two bits for each, and 70 bytes for each pack; twice that while it is
//! made anew, since until then it answers with what it has.
//!
//! Locks, in the order in which they are taken: `changing` (packs and runs are added), `marks` (bits
//! are set or carried into a new run), `state` (held for a moment).

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdall_format::{BlockKind, Footer, FooterBlock, ObjectId, PackName, RepositoryId};
use holdall_protocol::RepositoryError;
use holdall_sys::PathBeneath;

use crate::state_files::superseded::Superseded;
use crate::tails::tail::Tail;

mod bits;
mod checksum;
mod entry;
mod error;
mod filter;
mod living;
pub(crate) mod manifest;
mod merge;
mod needed;
pub(crate) mod page_cache;
mod persist;
mod removal;
pub(crate) mod run;
mod state;

use entry::Entry;
pub(crate) use error::IndexError;
pub(crate) use living::Counted;
pub(crate) use manifest::{ClosedInTails, PackInfo};
#[cfg(test)]
pub(crate) use merge::WRITES_FAIL;
pub(crate) use needed::NeededBlocks;
use page_cache::PageCache;
#[cfg(test)]
pub(crate) use persist::HALTED;
pub(crate) use persist::Listing;
use run::Run;
pub(crate) use state::{Holder, Lookup, ObjectCopy, State};

/// The index of one repository.
#[derive(Debug)]
pub(crate) struct Index {
    dir: PathBeneath,
    repository: RepositoryId,
    cache: PageCache,
    state: Mutex<Arc<State>>,
    changing: Mutex<()>,
    marks: Mutex<()>,
    /// Up to which log position records are in the closed bits.
    closed_position: AtomicU64,
    /// What changed since the manifest was written.
    unsaved_closed: AtomicU64,
    unsaved_packs: AtomicU64,
    /// Set when no merge is to go on.
    should_stop: AtomicBool,
    /// Files that no run uses, but perhaps the stored manifest.
    obsolete: Mutex<Vec<PathBeneath>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Index {
    /// What the index is now.
    pub(crate) fn state(&self) -> Arc<State> {
        lock(&self.state).clone()
    }

    /// Finds all copies of `ids` that count as there; the ids need not be sorted.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] if a page is not what was written.
    pub(crate) fn lookup(&self, ids: Vec<ObjectId>) -> Result<Lookup, IndexError> {
        let mut lookup = self.lookup_stored(ids)?;
        let state = lookup.state.clone();
        if !state.condemned.is_empty() {
            lookup.copies.retain(|copy| !state.is_condemned(copy.holder));
        }
        Ok(lookup)
    }

    /// Finds all copies of `ids`, those in condemned packs behind the others.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] if a page is not what was written.
    pub(crate) fn lookup_stored(&self, mut ids: Vec<ObjectId>) -> Result<Lookup, IndexError> {
        ids.sort_unstable();
        ids.dedup();
        let state = self.state();
        let mut copies = Vec::with_capacity(ids.len());
        for (run, number) in state.runs.iter().zip(0..) {
            run.find(&self.cache, &ids, &mut |question, at, entry| {
                copies.push(ObjectCopy::in_pack(question as u32, &entry, number, at));
            })?;
        }
        for (tail, number) in state.tails.iter().zip(0..) {
            let objects = tail.objects();
            for (id, question) in ids.iter().zip(0..) {
                for object in objects.copies(id) {
                    copies.push(ObjectCopy::in_tail(question, object, number));
                }
            }
        }
        // A block that is being moved lies in two places for a moment, with one arrival.
        copies.sort_unstable_by_key(|copy| {
            let is_condemned = state.is_condemned(copy.holder);
            let counts_at = state.superseded.counts_at(copy.arrival);
            (copy.question, is_condemned, counts_at, copy.arrival, copy.holder, copy.block)
        });
        Ok(Lookup { state, ids, copies })
    }

    /// Reads every page of every run.
    ///
    /// # Errors
    /// As [`Index::lookup`].
    pub(crate) fn check(&self) -> Result<(), IndexError> {
        for run in &self.state().runs {
            let mut reader = merge::RunReader::new(run);
            while reader.next_entry()?.is_some() {}
        }
        Ok(())
    }

    /// Has all pages that are not in memory yet fail to be read.
    #[cfg(test)]
    pub(crate) fn have_reads_fail(&self) {
        self.cache.reads_fail.store(true, Ordering::Release);
    }

    /// Keeps bits from being set or carried by anybody else.
    pub(crate) fn marks(&self) -> MutexGuard<'_, ()> {
        lock(&self.marks)
    }

    /// Up to which log position records are in the closed bits.
    pub(crate) fn closed_position(&self) -> u64 {
        self.closed_position.load(Ordering::Acquire)
    }

    /// Makes everything that was marked closed, up to a record at `position`.
    pub(crate) fn close_tentative(&self, position: u64) {
        let _marks = self.marks();
        let state = self.state();
        let mut closed = 0;
        for run in &state.runs {
            closed += run.closed.take_all(&run.tentative);
        }
        for tail in &state.tails {
            for object in tail.objects().values_mut().filter(|object| object.tentative) {
                object.closed = true;
                object.tentative = false;
                closed += 1;
            }
        }
        self.closed_position.fetch_max(position, Ordering::AcqRel);
        self.unsaved_closed.fetch_add(closed, Ordering::AcqRel);
    }

    /// Makes those chunks closed that were marked, and forgets the rest of the marks: for a record
    /// of which something is missing. Nothing is below a chunk, so it is closed by itself; which
    /// nodes are, is not known.
    pub(crate) fn close_tentative_chunks(&self) -> Result<(), IndexError> {
        let _marks = self.marks();
        let state = self.state();
        let mut closed = 0;
        for run in &state.runs {
            let mut reader = merge::RunReader::new(run);
            let mut at = 0;
            while let Some(entry) = reader.next_entry()? {
                if state.kind(Holder::Pack(entry.pack)) == BlockKind::Nodes {
                    run.tentative.put(at, false);
                }
                at += 1;
            }
            closed += run.closed.take_all(&run.tentative);
        }
        for tail in &state.tails {
            let are_chunks = tail.name().kind() == BlockKind::Chunks;
            for object in tail.objects().values_mut().filter(|object| object.tentative) {
                object.closed |= are_chunks;
                object.tentative = false;
            }
        }
        self.unsaved_closed.fetch_add(closed, Ordering::AcqRel);
        Ok(())
    }

    /// Forgets what was marked.
    pub(crate) fn drop_tentative(&self) {
        let _marks = self.marks();
        let state = self.state();
        state.runs.iter().for_each(|run| run.tentative.reset());
        for tail in &state.tails {
            tail.objects().values_mut().for_each(|object| object.tentative = false);
        }
    }

    /// Forgets what is closed, as when stored blocks turn out to be lost; records tell it again.
    pub(crate) fn forget_closed(&self) {
        self.forget_closed_holding(&self.marks());
    }

    /// As [`Index::forget_closed`], for who keeps bits from being set.
    fn forget_closed_holding(&self, _marks: &MutexGuard<'_, ()>) {
        // A descent that is running begins anew.
        self.change_state(|state| state.generation += 1);
        let state = self.state();
        for run in &state.runs {
            run.closed.reset();
            run.tentative.reset();
        }
        for tail in &state.tails {
            for object in tail.objects().values_mut() {
                object.closed = false;
                object.tentative = false;
            }
        }
        self.closed_position.store(0, Ordering::Release);
        self.unsaved_closed.fetch_add(1, Ordering::AcqRel);
    }

    /// Makes exactly that closed which was marked since `generation`, up to a record at `position`; `false`, and
    /// nothing is changed, if any marks were thrown away since.
    pub(crate) fn close_only_tentative(&self, position: u64, generation: u64) -> bool {
        {
            let _marks = self.marks();
            let state = self.state();
            if state.generation != generation {
                return false;
            }
            state.runs.iter().for_each(|run| run.closed.reset());
            for tail in &state.tails {
                tail.objects().values_mut().for_each(|object| object.closed = false);
            }
        }
        self.close_tentative(position);
        true
    }

    /// Closes each copy of these ids of which another one that came at the same time, so of the same
    /// block, is closed.
    ///
    /// # Errors
    /// As [`Index::lookup`].
    pub(crate) fn close_moved(&self, ids: Vec<ObjectId>) -> Result<(), IndexError> {
        let _marks = self.marks();
        let lookup = self.lookup(ids)?;
        let of_block = |copy: &ObjectCopy| (copy.question, copy.arrival);
        for copies in lookup.copies.chunk_by(|a, b| of_block(a) == of_block(b)) {
            if copies.iter().any(|copy| lookup.is_closed(copy)) {
                copies.iter().for_each(|copy| lookup.close(copy));
            }
        }
        Ok(())
    }

    /// Has nothing in this pack count as there from now on.
    pub(crate) fn condemn(&self, name: PackName) {
        self.change_state(|state| {
            let mut names = BTreeSet::clone(&state.condemned);
            names.insert(name);
            state.set_condemned(names);
        });
        self.unsaved_packs.fetch_add(1, Ordering::AcqRel);
    }

    /// Learns which packs are condemned, and which prune was the last. If there was one since it was
    /// stored what is closed, that is forgotten: a closed node may refer to what that one let go.
    pub(crate) fn learn_pruned(&self, condemned: BTreeSet<PackName>, pruned: u64) {
        let is_newer = self.state().pruned != pruned;
        self.change_state(|state| {
            state.set_condemned(condemned);
            state.pruned = pruned;
        });
        if is_newer {
            self.forget_closed();
        }
    }

    /// Learns which blocks are superseded. What is closed is found anew by a mark, since other copies
    /// count first now.
    pub(crate) fn learn_superseded(&self, superseded: Superseded) {
        self.change_state(|state| state.superseded = Arc::new(superseded));
    }

    /// Notes that what is closed now was found by the mark of that prune.
    pub(crate) fn set_pruned(&self, pruned: u64) {
        self.change_state(|state| state.pruned = pruned);
    }

    /// Makes a tail known.
    pub(crate) fn add_tail(&self, tail: Arc<Tail>) {
        self.change_state(|state| state.tails.push(tail));
    }

    /// Forgets a tail whose blocks are elsewhere.
    pub(crate) fn remove_tail(&self, tail: &Arc<Tail>) {
        self.change_state(|state| state.tails.retain(|known| !Arc::ptr_eq(known, tail)));
    }

    /// Puts a closed pack in the place of its tail, with the tail's marks.
    pub(crate) fn tail_became_pack(
        &self,
        tail: &Arc<Tail>,
        pack: PackInfo,
    ) -> Result<(), IndexError> {
        let _changing = lock(&self.changing);
        let blocks = tail.all_clear();
        let entries = entries_of(blocks.iter().map(|block| &**block), self.next_pack()?)?;
        let run = self.write(&entries)?;
        let _marks = self.marks();
        let objects = tail.objects();
        for (entry, at) in entries.iter().zip(0..) {
            // Of a block that was moved here twice, which keeps its arrival, the second copy has no marks.
            let object = objects.get(&entry.id, entry.arrival);
            if let Some(object) = object.filter(|object| object.block == entry.block) {
                run.closed.put(at, object.closed);
                run.tentative.put(at, object.tentative);
            }
        }
        drop(objects);
        self.change_state(|state| {
            state.tails.retain(|known| !Arc::ptr_eq(known, tail));
            push_pack(state, pack, run);
        });
        self.unsaved_packs.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Adds a pack that has no tail, with what is known to be closed in it.
    fn add_pack(
        &self,
        pack: PackInfo,
        footer: &Footer,
        closed: &mut ClosedInTails,
    ) -> Result<(), IndexError> {
        let entries = entries_of(footer.blocks.iter(), self.next_pack()?)?;
        let run = self.write(&entries)?;
        mark_closed(&run, &entries, closed);
        self.change_state(|state| push_pack(state, pack, run));
        self.unsaved_packs.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// The number of the next pack in the catalogue.
    fn next_pack(&self) -> Result<u32, IndexError> {
        u32::try_from(self.state().packs.len()).map_err(|_| {
            IndexError::Failed(RepositoryError::NoRoom { place: "the index's catalogue".into() })
        })
    }

    fn write(&self, entries: &[Entry]) -> Result<Run, IndexError> {
        let sorted = entries.iter().copied().map(Ok);
        merge::write_run(&self.dir, &self.repository, entries.len() as u64, sorted)
    }

    fn change_state(&self, change: impl FnOnce(&mut State)) {
        let mut state = lock(&self.state);
        let mut next = State::clone(&state);
        change(&mut next);
        *state = Arc::new(next);
    }

    /// Has a merge that is running given up.
    pub(crate) fn stop_merging(&self) {
        self.should_stop.store(true, Ordering::Release);
    }

    /// Merges two runs of about the same size, if there are such; says whether it did.
    pub(crate) fn merge_some(&self) -> Result<bool, IndexError> {
        let Some((first, second)) = mergeable(&self.state()) else { return Ok(false) };
        let merged =
            merge::merge(&self.dir, &self.repository, [&first, &second], &self.should_stop)?;
        let _marks = self.marks();
        let merged = Arc::new(merged.with_marks(&first, &second));
        let is_one = |run: &Arc<Run>| Arc::ptr_eq(run, &first) || Arc::ptr_eq(run, &second);
        let mut replaced = false;
        self.change_state(|state| {
            replaced = state.runs.iter().filter(|run| is_one(run)).count() == 2;
            if replaced {
                state.runs.retain(|run| !is_one(run));
                state.runs.push(merged.clone());
            }
        });
        let gone = if replaced { vec![&first, &second] } else { vec![&merged] };
        lock(&self.obsolete).extend(gone.into_iter().map(|run| run.path().clone()));
        Ok(true)
    }
}

fn push_pack(state: &mut State, pack: PackInfo, run: Run) {
    state.add_pack(pack);
    state.runs.push(Arc::new(run));
}

/// Two runs of which neither has more than twice the entries of the other, the smallest such.
fn mergeable(state: &State) -> Option<(Arc<Run>, Arc<Run>)> {
    let mut runs: Vec<&Arc<Run>> = state.runs.iter().collect();
    runs.sort_unstable_by_key(|run| run.shape().entries);
    runs.windows(2).find_map(|pair| match pair {
        [small, large] if large.shape().entries <= small.shape().entries.saturating_mul(2) => {
            Some(((*small).clone(), (*large).clone()))
        }
        _ => None,
    })
}

/// The entries of a pack, sorted, each object once for each block.
fn entries_of<'a>(
    blocks: impl Iterator<Item = &'a FooterBlock>,
    pack: u32,
) -> Result<Vec<Entry>, IndexError> {
    let mut entries = Vec::new();
    for (block, number) in blocks.zip(0..) {
        let table = block.table().map_err(RepositoryError::from)?;
        let entry = |id| Entry { id, arrival: block.arrival, pack, block: number };
        entries.extend(table.entries.iter().map(|object| entry(object.id)));
    }
    entries.sort_unstable();
    entries.dedup();
    Ok(entries)
}

/// Sets the closed bits of entries, in their order, whose blocks lay in tails when the bits were stored.
fn mark_closed(run: &Run, entries: &[Entry], closed: &mut ClosedInTails) {
    let mut nth = std::collections::BTreeMap::new();
    let mut before = None;
    for (entry, at) in entries.iter().zip(0..) {
        // A block that was moved there twice is listed once in its tail, with its first copy.
        if before.replace((entry.id, entry.arrival)) == Some((entry.id, entry.arrival)) {
            continue;
        }
        let Some(bits) = closed.meet(entry.arrival) else { continue };
        let place = nth.entry(entry.arrival).or_insert(0usize);
        run.closed.put(at, bit(bits, *place));
        *place += 1;
    }
}

/// One bit of bytes, the lowest of each byte first; clear behind the end.
fn bit(bits: &[u8], at: usize) -> bool {
    bits.get(at / 8).is_some_and(|byte| byte & (1 << (at % 8)) != 0)
}

/// The pack's file and what its footer says of it.
pub(crate) fn pack_info(name: PackName, footer: &Footer, file_bytes: u64) -> PackInfo {
    let arrivals = || footer.blocks.iter().map(|block| block.arrival);
    PackInfo {
        name,
        kind: footer.kind,
        first_arrival: arrivals().min().unwrap_or_default(),
        last_arrival: arrivals().max().unwrap_or_default(),
        file_bytes,
        blocks: footer.blocks.len() as u64,
    }
}

/// The manifest's path.
fn manifest_path(dir: &PathBeneath) -> PathBeneath {
    dir.join("manifest")
}
