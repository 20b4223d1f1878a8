//! Closure: whether everything that a root reaches is stored.
//!
//! A descent marks what it reaches in the index, beside what is closed; only when a record is
//! published do its marks become closed. It goes no further where something is closed already, so a
//! commit costs in proportion to what is new. The marks are the set of what was found. What a node
//! refers to is looked up at once, and only nodes that nothing referred to before wait to be followed:
//! so much is memory for them bounded, and a tree that wants more is refused.

use std::collections::BTreeSet;

use holdall_format::{BlockKind, ObjectId};
use holdall_protocol::RepositoryError;

use crate::index::{Holder, IndexError, Lookup, ObjectCopy};
use crate::reachability::read::StoredBlocks;
use crate::storage::retry::split_process_errors;

/// Nodes that waited and are looked up at once: enough that most of what is read of the index for them
/// is read once. Batches of 4,096 took three times as long for a million objects.
const BATCH_IDS: usize = 32 << 10;
/// References found in one step beyond which the step's other nodes wait.
const STEP_REFS: usize = 64 << 10;
/// Most nodes that wait: 64 MiB of ids. What is below is followed first, so that of each level of a tree at
/// most 100,000 wait, and so many only of one that is as broad as that. Tests make do with less.
const WAITING_MOST: usize = if cfg!(test) { 500 } else { 2 << 20 };
/// Most missing objects that are named.
const MAX_MISSING: usize = 10_000;
/// How often a damaged index is rebuilt before giving up.
const REBUILDS: usize = 2;

/// Which nodes a descent goes into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Descend {
    /// Those that no mark says to be reachable: what is below the others was looked at when they were marked.
    UnmarkedOnly,
    /// All.
    Everything,
}

/// Why a descent ended.
enum Ended {
    /// That was all, or enough is missing.
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
    /// Whether nothing of it is missing.
    pub(crate) is_whole: bool,
}

struct Descent<'a> {
    blocks: &'a StoredBlocks,
    which: Descend,
    /// Chunks below this log position are old.
    old_before: u64,
    tally: Tally,
    generation: u64,
    /// Referred to and not looked up yet: those of one step.
    found: Vec<ObjectId>,
    /// Nodes that are marked, and that nobody has followed yet.
    waiting: Vec<ObjectId>,
    missing: BTreeSet<ObjectId>,
}

/// Rebuilds the index and its marks, unless that was done since this generation.
pub(crate) type Rebuild<'a> = &'a dyn Fn(u64) -> Result<(), RepositoryError>;

/// Marks everything that `root` reaches, and says what of it is missing (at most 10,000 ids; where more is, not all
/// is looked at). Where `rebuild` is `None`, a damaged index is an error.
///
/// Marks are left as they are; whoever holds the commit lock makes them closed or drops them.
pub(crate) fn descend(
    blocks: &StoredBlocks,
    rebuild: Option<Rebuild<'_>>,
    root: ObjectId,
    which: Descend,
) -> Result<Vec<ObjectId>, RepositoryError> {
    run(blocks, rebuild, root, which, 0).map(Descent::named_missing)
}

/// Counts what `root` reaches, and leaves no marks.
pub(crate) fn tally(
    blocks: &StoredBlocks,
    rebuild: Rebuild<'_>,
    root: ObjectId,
    old_before: u64,
) -> Result<Tally, RepositoryError> {
    blocks.index.drop_tentative();
    let counted = run(blocks, Some(rebuild), root, Descend::Everything, old_before)
        .map(|descent| Tally { is_whole: descent.missing.is_empty(), ..descent.tally });
    blocks.index.drop_tentative();
    counted
}

fn run<'a>(
    blocks: &'a StoredBlocks,
    rebuild: Option<Rebuild<'_>>,
    root: ObjectId,
    which: Descend,
    old_before: u64,
) -> Result<Descent<'a>, RepositoryError> {
    let mut rebuilds = 0;
    loop {
        let mut descent = Descent::new(blocks, which, old_before, root);
        match (descent.run(), rebuild) {
            (Ok(Ended::MarksAreGone), _) => {}
            (Ok(Ended::Done), _) => return Ok(descent),
            (Err(IndexError::Damaged { .. }), Some(rebuild)) if rebuilds < REBUILDS => {
                rebuilds += 1;
                rebuild(descent.generation)?;
            }
            (Err(error), _) => return Err(error.into()),
        }
    }
}

impl<'a> Descent<'a> {
    fn new(blocks: &'a StoredBlocks, which: Descend, old_before: u64, root: ObjectId) -> Self {
        Self {
            blocks,
            which,
            old_before,
            tally: Tally::default(),
            generation: blocks.index.state().generation,
            found: vec![root],
            waiting: Vec::new(),
            missing: BTreeSet::new(),
        }
    }

    /// What is missing, as far as it is named.
    fn named_missing(self) -> Vec<ObjectId> {
        self.missing.into_iter().take(MAX_MISSING).collect()
    }

    fn run(&mut self) -> Result<Ended, IndexError> {
        loop {
            if let Some(ended) = self.step()? {
                return Ok(ended);
            }
        }
    }

    /// Looks up what was found, or else some of the nodes that wait, and adds what new nodes refer to.
    fn step(&mut self) -> Result<Option<Ended>, IndexError> {
        let has_found = !self.found.is_empty();
        if self.missing.len() >= MAX_MISSING || !has_found && self.waiting.is_empty() {
            return Ok(Some(Ended::Done));
        }
        let ids = if has_found { std::mem::take(&mut self.found) } else { self.take_waiting() };
        let _marks = self.blocks.index.marks();
        let lookup = self.blocks.index.lookup(ids)?;
        if lookup.state.generation != self.generation {
            return Ok(Some(Ended::MarksAreGone));
        }
        let mut nodes = if has_found { self.mark(&lookup) } else { self.marked(&lookup) };
        nodes.sort_unstable_by_key(|copy| (copy.holder, copy.block));
        self.expand(&lookup, &nodes)?;
        Ok(None)
    }

    fn take_waiting(&mut self) -> Vec<ObjectId> {
        self.waiting.split_off(self.waiting.len().saturating_sub(BATCH_IDS))
    }

    /// Marks what is new of what was found, and says which of it are nodes.
    fn mark(&mut self, lookup: &Lookup) -> Vec<ObjectCopy> {
        let mut nodes = Vec::new();
        for (question, id) in lookup.ids.iter().enumerate() {
            let Some(first) = lookup.copies_of(question).first() else {
                self.missing.insert(*id);
                continue;
            };
            let is_known = self.which == Descend::UnmarkedOnly && lookup.is_closed(first);
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
        nodes
    }

    /// Where nodes are that waited.
    fn marked(&mut self, lookup: &Lookup) -> Vec<ObjectCopy> {
        let mut nodes = Vec::with_capacity(lookup.ids.len());
        for (question, id) in lookup.ids.iter().enumerate() {
            match lookup.copies_of(question).first() {
                Some(first) => nodes.push(*first),
                None => drop(self.missing.insert(*id)),
            }
        }
        nodes
    }

    /// Adds what these nodes refer to. Once that is much, the rest of them waits.
    fn expand(&mut self, lookup: &Lookup, nodes: &[ObjectCopy]) -> Result<(), RepositoryError> {
        let mut children = Vec::new();
        for of_block in nodes.chunk_by(|a, b| (a.holder, a.block) == (b.holder, b.block)) {
            if children.len() <= STEP_REFS {
                self.expand_block(lookup, of_block, &mut children)?;
                continue;
            }
            let ids = of_block.iter().filter_map(|copy| lookup.ids.get(copy.question as usize));
            self.waiting.extend(ids);
        }
        self.found = children;
        if self.waiting.len() > WAITING_MOST {
            let reason = format!(
                "the tree is too broad: more than {WAITING_MOST} of its nodes wait at once"
            );
            return Err(RepositoryError::Refused { reason });
        }
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
        let found = refs_in(self.blocks, lookup, first.holder, first.block, &wanted, children)?;
        for id in wanted.difference(&found) {
            if !self.expand_other_copy(lookup, *id, children)? {
                self.missing.insert(*id);
            }
        }
        Ok(())
    }

    /// Where the table of the first copy cannot be read, the next copy that can be stands in, if any can.
    fn expand_other_copy(
        &self,
        lookup: &Lookup,
        id: ObjectId,
        children: &mut Vec<ObjectId>,
    ) -> Result<bool, RepositoryError> {
        let one = BTreeSet::from([id]);
        for copy in lookup.copies_of_id(&id).iter().skip(1) {
            if !refs_in(self.blocks, lookup, copy.holder, copy.block, &one, children)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Adds the references of the wanted nodes of one block; says which of them were found.
///
/// # Errors
/// Those that say nothing of any file: what cannot be read now is not missing for that.
fn refs_in(
    blocks: &StoredBlocks,
    lookup: &Lookup,
    holder: Holder,
    block: u32,
    wanted: &BTreeSet<ObjectId>,
    children: &mut Vec<ObjectId>,
) -> Result<BTreeSet<ObjectId>, RepositoryError> {
    let mut found = BTreeSet::new();
    let read = split_process_errors(blocks.table(&lookup.state, holder, block))?;
    let Ok(table) = read else { return Ok(found) };
    for entry in table.entries {
        if wanted.contains(&entry.id) && found.insert(entry.id) {
            children.extend(entry.refs);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use holdall_format::TombstoneReason;
    use holdall_format::limits::NODE_MAX_REFS;
    use holdall_protocol::Repository;

    use super::*;
    use crate::place::{Place, id};

    const LAYERS: u32 = 8;
    const NODES: u32 = 32;
    /// The longest nodes of which a block's table has room for.
    const NODES_OF_BLOCK: usize = 7;

    /// A tree of layers of the longest nodes, of which each refers to all nodes of the next layer and to the same
    /// chunks as all others. Says which its root is, and how many chunks there are.
    fn put_layers(place: &Place) -> (ObjectId, usize) {
        let layer = |number: u32| (0..NODES).map(move |node| id(1 + number * NODES + node));
        let chunks: Vec<_> = (0..NODE_MAX_REFS as u32 - NODES).map(|at| id(100_000 + at)).collect();
        let session = place.session();
        let put = |block| {
            place.machine().put_blocks(&session, &[block]).unwrap();
        };
        put(place.forge.chunks(&chunks));
        for number in 0..LAYERS {
            let below = layer(number + 1).filter(|_| number + 1 < LAYERS);
            let refs: Vec<ObjectId> = below.chain(chunks.iter().copied()).collect();
            let nodes: Vec<(ObjectId, &[ObjectId])> =
                layer(number).map(|id| (id, &*refs)).collect();
            nodes.chunks(NODES_OF_BLOCK).for_each(|some| put(place.forge.nodes(some)));
        }
        let first: Vec<ObjectId> = layer(0).collect();
        put(place.forge.nodes(&[(id(0), &first)]));
        (id(0), chunks.len())
    }

    #[test]
    fn nodes_that_all_refer_to_the_same_make_no_more_wait_than_there_are() {
        let place = Place::new();
        let (root, chunks) = put_layers(&place);
        let mut descent = Descent::new(place.store.blocks(), Descend::Everything, 0, root);
        let (mut found, mut waiting) = (0, 0);
        while descent.step().unwrap().is_none() {
            found = found.max(descent.found.len());
            waiting = waiting.max(descent.waiting.len());
        }
        assert!(descent.missing.is_empty());
        let nodes = (LAYERS * NODES) as usize;
        assert_eq!(descent.tally.objects, (1 + nodes + chunks) as u64);
        assert_eq!(descent.tally.chunks, chunks as u64);
        assert!((1..nodes).contains(&waiting), "{waiting} of {nodes} nodes");
        assert!(found <= STEP_REFS + NODES_OF_BLOCK * NODE_MAX_REFS, "{found}");
    }

    #[test]
    fn a_tree_of_which_too_much_waits_is_refused() {
        let place = Place::new();
        let [_, whole, _] = commit_broad_tree(&place);
        let mut descent = Descent::new(place.store.blocks(), Descend::Everything, 0, whole);
        let refused = descent.run().map(|_| ()).unwrap_err();
        assert!(matches!(refused, IndexError::Failed(RepositoryError::Refused { .. })));
    }

    /// Commits a tree of which too much waits in two stages, of which the first is forgotten, and a small one. Says
    /// which their roots are.
    fn commit_broad_tree(place: &Place) -> [ObjectId; 3] {
        let chunks: Vec<_> = (0..NODE_MAX_REFS as u32).map(|at| id(100_000 + at)).collect();
        let broad: Vec<ObjectId> = (1000..1021).map(id).collect();
        let small: Vec<ObjectId> = (2000..2000 + WAITING_MOST as u32 + 1).map(id).collect();
        let all: Vec<ObjectId> = broad.iter().chain(&small).copied().collect();
        let session = place.session();
        let put = |block| {
            place.machine().put_blocks(&session, &[block]).unwrap();
        };
        put(place.forge.chunks(&chunks));
        for some in broad.chunks(NODES_OF_BLOCK) {
            let nodes: Vec<_> = some.iter().map(|id| (*id, &*chunks)).collect();
            put(place.forge.nodes(&nodes));
        }
        put(place.forge.nodes(&small.iter().map(|id| (*id, &[][..])).collect::<Vec<_>>()));
        let roots = [1, 2, 3].map(id);
        let [first_stage, whole, other] = roots;
        let nodes = [(first_stage, &*small), (whole, &*all), (other, &chunks[..1])];
        put(place.forge.nodes(&nodes));
        commit_roots(place, roots);
        let stage = place.store.records().after(0)[0].hash;
        place.store.forget(&[stage], TombstoneReason::Retention).unwrap();
        roots
    }

    fn commit_roots(place: &Place, roots: impl IntoIterator<Item = ObjectId>) {
        roots.into_iter().for_each(|root| place.commit_root(&place.session(), root));
    }

    #[test]
    fn a_repository_opens_though_too_much_of_one_of_its_trees_waits() {
        let place = Place::new();
        let [first_stage, whole, other] = commit_broad_tree(&place);
        let place = place.opened_without_cache();
        let lookup = place.store.lookup(vec![whole, other]).unwrap();
        let is_closed =
            |root| lookup.copies_of_id(root).first().is_some_and(|first| lookup.is_closed(first));
        assert_eq!([&whole, &other].map(is_closed), [false, true]);
        commit_roots(&place, [first_stage, whole]);
        assert!(is_closed(&whole));
    }

    #[test]
    fn a_tree_of_which_too_much_waits_to_be_pruned_is_told_as_damage() {
        let place = Place::new();
        commit_broad_tree(&place);
        let refused = place.store.check_needed().unwrap_err();
        assert!(matches!(refused, RepositoryError::Refused { .. }), "{refused}");
        let round = place.store.scrub_round().unwrap().unwrap();
        assert_eq!(round.damaged.values().collect::<Vec<_>>(), [&refused.to_string()]);
    }

    #[test]
    fn an_index_that_is_damaged_each_time_it_is_rebuilt_is_an_error() {
        let place = Place::new();
        let session = place.session();
        place.machine().put_blocks(&session, &[place.forge.nodes(&[(id(0), &[])])]).unwrap();
        place.commit_root(&session, id(0));
        place.store.appender().unwrap().close_open_tail(true);
        place.store.index().have_reads_fail();
        let commit = place.store.lock_commit();
        let failed = place.store.descend(&commit, id(0), Descend::Everything).unwrap_err();
        assert!(matches!(failed, RepositoryError::Damaged { .. }), "{failed}");
    }

    #[test]
    fn of_what_is_missing_only_so_many_are_named() {
        let place = Place::new();
        let session = place.session();
        let nodes = [1, 2, 3].map(id);
        for node in 1..=3 {
            let first = node * 10_000;
            let refs: Vec<_> = (first..first + NODE_MAX_REFS as u32).map(id).collect();
            place
                .machine()
                .put_blocks(&session, &[place.forge.nodes(&[(id(node), &refs)])])
                .unwrap();
        }
        place.machine().put_blocks(&session, &[place.forge.nodes(&[(id(0), &nodes)])]).unwrap();
        let commit = place.store.lock_commit();
        let missing = place.store.descend(&commit, id(0), Descend::Everything).unwrap();
        assert_eq!(missing.len(), MAX_MISSING);
    }
}
