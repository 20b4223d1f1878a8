//! Closure: whether everything that a root reaches is stored.
//!
//! A descent marks what it reaches in the index, beside what is closed; only when a record is
//! published do its marks become closed. It goes no further where something is closed already, so a
//! commit costs in proportion to what is new. The marks are the set of what was visited: memory does
//! not grow with the tree, but for the ids that wait to be looked up.

use std::collections::BTreeSet;

use holdall_format::{BlockKind, ObjectId};
use holdall_protocol::RepositoryError;

use crate::index::{Holder, IndexError, Lookup, ObjectCopy};
use crate::reread::of_the_file;
use crate::store::{CommitGuard, Store};

/// Ids that are looked up at once: enough that most of what is read of the index for them is read
/// once. Batches of 4,096 took three times as long for a million objects.
const BATCH_IDS: usize = 32 << 10;
/// References found in one step beyond which the step's other nodes wait.
const STEP_REFS: usize = 64 << 10;
/// Most missing objects that are named.
const MAX_MISSING: usize = 10_000;
/// How often a damaged index is rebuilt before giving up.
const REBUILDS: usize = 2;

/// What a descent is to do with what is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closed {
    /// Nothing below it needs to be looked at.
    Stops,
    /// It is descended through like all else.
    Passes,
}

/// What a step came to.
enum Step {
    Done,
    /// All marks were thrown away meanwhile.
    MarksAreGone,
}

/// How much a root reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tally {
    /// Nodes and chunks.
    pub(crate) objects: u64,
    /// Chunks.
    pub(crate) chunks: u64,
    /// Chunks that came before some log position.
    pub(crate) old_chunks: u64,
}

struct Descent<'a> {
    store: &'a Store,
    closed: Closed,
    /// Chunks below this log position are old.
    old_before: u64,
    tally: Tally,
    generation: u64,
    pending: Vec<ObjectId>,
    missing: BTreeSet<ObjectId>,
}

/// Marks everything that `root` reaches, and says what of it is missing (at most 10,000 ids).
///
/// Marks are left as they are; whoever holds the commit lock makes them closed or drops them.
pub(crate) fn descend(
    store: &Store,
    commit: &CommitGuard<'_>,
    root: ObjectId,
    closed: Closed,
) -> Result<Vec<ObjectId>, RepositoryError> {
    run(store, commit, root, closed, 0).map(|descent| descent.missing.into_iter().collect())
}

/// Counts what `root` reaches, and leaves no marks; `None` if any of it is missing.
pub(crate) fn tally(
    store: &Store,
    commit: &CommitGuard<'_>,
    root: ObjectId,
    old_before: u64,
) -> Result<Option<Tally>, RepositoryError> {
    store.index().drop_tentative();
    let counted = run(store, commit, root, Closed::Passes, old_before)
        .map(|descent| descent.missing.is_empty().then_some(descent.tally));
    store.index().drop_tentative();
    counted
}

fn run<'a>(
    store: &'a Store,
    commit: &CommitGuard<'_>,
    root: ObjectId,
    closed: Closed,
    old_before: u64,
) -> Result<Descent<'a>, RepositoryError> {
    let mut rebuilds = 0;
    loop {
        let generation = store.index().state().generation;
        let mut descent = Descent {
            store,
            closed,
            old_before,
            tally: Tally::default(),
            generation,
            pending: vec![root],
            missing: BTreeSet::new(),
        };
        match descent.run() {
            Ok(Step::Done) => return Ok(descent),
            Ok(Step::MarksAreGone) => {}
            Err(IndexError::Damaged { .. }) if rebuilds < REBUILDS => {
                rebuilds += 1;
                store.rebuild_index(commit, generation)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

impl Descent<'_> {
    fn run(&mut self) -> Result<Step, IndexError> {
        while !self.pending.is_empty() && self.missing.len() < MAX_MISSING {
            let at = self.pending.len().saturating_sub(BATCH_IDS);
            let batch = self.pending.split_off(at);
            if let Step::MarksAreGone = self.step(batch)? {
                return Ok(Step::MarksAreGone);
            }
        }
        Ok(Step::Done)
    }

    /// Looks up a batch, marks what is new in it and adds what its nodes refer to.
    fn step(&mut self, batch: Vec<ObjectId>) -> Result<Step, IndexError> {
        let _marks = self.store.index().marks();
        let lookup = self.store.index().lookup(batch)?;
        if lookup.state.generation != self.generation {
            return Ok(Step::MarksAreGone);
        }
        let mut nodes = Vec::new();
        for (question, id) in lookup.ids.iter().enumerate() {
            let Some(first) = lookup.copies_of(question).first() else {
                self.missing.insert(*id);
                continue;
            };
            let is_known = self.closed == Closed::Stops && lookup.is_closed(first);
            if is_known || lookup.is_tentative(first) {
                continue;
            }
            lookup.put_tentative(first, true);
            self.tally.objects += 1;
            if lookup.kind(first) == BlockKind::Nodes {
                nodes.push(*first);
            } else {
                self.tally.chunks += 1;
                // One that was compacted is as old as what it is a copy of.
                let copies = lookup.copies_of(question).iter();
                let is_old = copies.into_iter().any(|copy| copy.arrival < self.old_before);
                self.tally.old_chunks += u64::from(is_old);
            }
        }
        nodes.sort_unstable_by_key(|copy| (copy.holder, copy.block));
        self.expand(&lookup, &nodes)?;
        Ok(Step::Done)
    }

    /// Adds what these nodes refer to. Once that is much, the rest of them waits below it, unmarked.
    fn expand(&mut self, lookup: &Lookup, nodes: &[ObjectCopy]) -> Result<(), RepositoryError> {
        let mut children = Vec::new();
        for of_block in nodes.chunk_by(|a, b| (a.holder, a.block) == (b.holder, b.block)) {
            if children.len() > STEP_REFS {
                for copy in of_block {
                    lookup.put_tentative(copy, false);
                    self.tally.objects -= 1;
                    self.pending.extend(lookup.ids.get(copy.question as usize));
                }
                continue;
            }
            self.expand_block(lookup, of_block, &mut children)?;
        }
        self.pending.append(&mut children);
        Ok(())
    }

    fn expand_block(
        &mut self,
        lookup: &Lookup,
        of_block: &[ObjectCopy],
        children: &mut Vec<ObjectId>,
    ) -> Result<(), RepositoryError> {
        let Some(first) = of_block.first() else { return Ok(()) };
        let wanted: BTreeSet<ObjectId> = of_block
            .iter()
            .filter_map(|copy| lookup.ids.get(copy.question as usize).copied())
            .collect();
        let found = refs_in(self.store, lookup, first.holder, first.block, &wanted, children)?;
        for id in wanted.difference(&found) {
            if !self.expand_other_copy(lookup, *id, children)? {
                self.missing.insert(*id);
            }
        }
        Ok(())
    }

    /// Where the table of the first copy can not be read, the next copy that can be stands in, if any can.
    fn expand_other_copy(
        &self,
        lookup: &Lookup,
        id: ObjectId,
        children: &mut Vec<ObjectId>,
    ) -> Result<bool, RepositoryError> {
        let one = BTreeSet::from([id]);
        for copy in lookup.copies_of_id(&id).iter().skip(1) {
            if !refs_in(self.store, lookup, copy.holder, copy.block, &one, children)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Adds the references of the wanted nodes of one block; says which of them were found.
///
/// # Errors
/// Those that say nothing of any file: what can not be read now is not missing for that.
fn refs_in(
    store: &Store,
    lookup: &Lookup,
    holder: Holder,
    block: u32,
    wanted: &BTreeSet<ObjectId>,
    children: &mut Vec<ObjectId>,
) -> Result<BTreeSet<ObjectId>, RepositoryError> {
    let mut found = BTreeSet::new();
    let read = of_the_file(store.table(&lookup.state, holder, block))?;
    let Ok(table) = read else { return Ok(found) };
    for entry in table.entries {
        if wanted.contains(&entry.id) && found.insert(entry.id) {
            children.extend(entry.refs);
        }
    }
    Ok(found)
}
