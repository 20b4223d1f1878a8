//! What the index is at one moment, and the answers that hold for that moment.

use std::collections::BTreeSet;
use std::sync::Arc;

use holdall_format::{BlockKind, ObjectId, PackName};

use super::manifest::PackInfo;
use super::run::Run;
use crate::state_files::superseded::Superseded;
use crate::tails::objects::TailObject;
use crate::tails::tail::Tail;

/// Packs, runs and tails that belong together. Replaced as a whole, never changed.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    /// Every pack; entries name them by their place here.
    pub(crate) packs: Arc<Vec<Arc<PackInfo>>>,
    /// What they are together.
    pub(crate) in_packs: InPacks,
    /// Every run.
    pub(crate) runs: Vec<Arc<Run>>,
    /// Every tail whose pack is not in the runs.
    pub(crate) tails: Vec<Arc<Tail>>,
    /// Packs of which nothing counts as there, known here or not.
    pub(crate) condemned: Arc<BTreeSet<PackName>>,
    /// The places of those in `packs`.
    pub(super) condemned_places: Arc<BTreeSet<u32>>,
    /// Blocks whose copies count behind others, known here or not.
    pub(crate) superseded: Arc<Superseded>,
    /// The number of the last prune or mark of superseded blocks: what is closed was found after it.
    pub(crate) pruned: u64,
    /// Rises when all marks were thrown away.
    pub(crate) generation: u64,
}

/// Sums over packs, so that nobody needs to go through them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct InPacks {
    /// Length of all files.
    pub(crate) file_bytes: u64,
    /// How many blocks they have.
    pub(crate) blocks: u64,
}

impl InPacks {
    pub(super) fn add(&mut self, pack: &PackInfo) {
        self.file_bytes = self.file_bytes.saturating_add(pack.file_bytes);
        self.blocks = self.blocks.saturating_add(pack.blocks);
    }
}

/// What a block lies in: a place in the state's packs or tails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Holder {
    /// A closed pack.
    Pack(u32),
    /// A tail.
    Tail(u32),
}

/// One stored copy of an object that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ObjectCopy {
    /// Which of the ids that were asked for.
    pub(crate) question: u32,
    /// When it came.
    pub(crate) arrival: u64,
    /// What it lies in.
    pub(crate) holder: Holder,
    /// The block there.
    pub(crate) block: u32,
    /// For a pack: the run, and the entry in it, that have its marks.
    run: u32,
    entry: u64,
}

impl ObjectCopy {
    pub(crate) fn in_pack(question: u32, entry: &super::entry::Entry, run: u32, at: u64) -> Self {
        let holder = Holder::Pack(entry.pack);
        Self { question, arrival: entry.arrival, holder, block: entry.block, run, entry: at }
    }

    /// Whether it lies in that block.
    pub(crate) fn is_at(&self, holder: Holder, block: u32) -> bool {
        (self.holder, self.block) == (holder, block)
    }

    pub(crate) fn in_tail(question: u32, object: &TailObject, tail: u32) -> Self {
        let TailObject { arrival, block, .. } = *object;
        Self { question, arrival, holder: Holder::Tail(tail), block, run: 0, entry: 0 }
    }
}

/// The answer to a question for many ids.
#[derive(Debug)]
pub(crate) struct Lookup {
    /// The moment for which it holds.
    pub(crate) state: Arc<State>,
    /// The ids, ascending and distinct.
    pub(crate) ids: Vec<ObjectId>,
    /// All copies, by question and then by arrival.
    pub(crate) copies: Vec<ObjectCopy>,
}

impl Lookup {
    /// The copies of one of the ids, the authoritative one first.
    pub(crate) fn copies_of(&self, question: usize) -> &[ObjectCopy] {
        let start = self.copies.partition_point(|copy| (copy.question as usize) < question);
        let rest = self.copies.get(start..).unwrap_or_default();
        let count = rest.partition_point(|copy| copy.question as usize == question);
        rest.get(..count).unwrap_or_default()
    }

    /// The copies of an id that was asked for.
    pub(crate) fn copies_of_id(&self, id: &ObjectId) -> &[ObjectCopy] {
        self.ids.binary_search(id).map_or(&[], |question| self.copies_of(question))
    }

    /// Whether a commit reached this copy.
    pub(crate) fn is_closed(&self, copy: &ObjectCopy) -> bool {
        self.marks(copy).is_some_and(|(closed, _)| closed)
    }

    /// Whether the same block lies in something else too, and is closed there: one that prunes moved.
    pub(crate) fn is_closed_elsewhere(&self, copy: &ObjectCopy) -> bool {
        let mut copies = self.copies_of(copy.question as usize).iter();
        let is_twin = |other: &ObjectCopy| {
            other.arrival == copy.arrival && other.holder != copy.holder && self.is_closed(other)
        };
        copies.any(is_twin)
    }

    /// Whether a commit that is running reached it.
    pub(crate) fn is_tentative(&self, copy: &ObjectCopy) -> bool {
        self.marks(copy).is_some_and(|(_, tentative)| tentative)
    }

    /// Sets or clears the mark of the commit that is running.
    pub(crate) fn put_tentative(&self, copy: &ObjectCopy, value: bool) {
        match copy.holder {
            Holder::Pack(_) => {
                if let Some(run) = self.state.runs.get(copy.run as usize) {
                    run.tentative.put(copy.entry, value);
                }
            }
            Holder::Tail(tail) => {
                self.in_tail(copy, tail, |object| object.tentative = value);
            }
        }
    }

    /// Makes a copy closed.
    pub(crate) fn close(&self, copy: &ObjectCopy) {
        match copy.holder {
            Holder::Pack(_) => {
                if let Some(run) = self.state.runs.get(copy.run as usize) {
                    run.closed.put(copy.entry, true);
                }
            }
            Holder::Tail(tail) => {
                self.in_tail(copy, tail, |object| object.closed = true);
            }
        }
    }

    /// What the block of a copy holds.
    pub(crate) fn kind(&self, copy: &ObjectCopy) -> BlockKind {
        self.state.kind(copy.holder)
    }

    fn marks(&self, copy: &ObjectCopy) -> Option<(bool, bool)> {
        match copy.holder {
            Holder::Pack(_) => {
                let run = self.state.runs.get(copy.run as usize)?;
                Some((run.closed.get(copy.entry), run.tentative.get(copy.entry)))
            }
            Holder::Tail(tail) => {
                self.in_tail(copy, tail, |object| (object.closed, object.tentative))
            }
        }
    }

    fn in_tail<T>(
        &self,
        copy: &ObjectCopy,
        tail: u32,
        with: impl FnOnce(&mut TailObject) -> T,
    ) -> Option<T> {
        let id = self.ids.get(copy.question as usize)?;
        let tail = self.state.tails.get(tail as usize)?;
        tail.objects().get_mut(id, copy.arrival).map(with)
    }
}

impl State {
    /// Whether nothing in that pack counts as there.
    pub(crate) fn is_condemned(&self, holder: Holder) -> bool {
        match holder {
            Holder::Pack(place) => self.condemned_places.contains(&place),
            Holder::Tail(_) => false,
        }
    }

    /// Has nothing in these packs count as there, and everything in all others, now and when they
    /// are added later.
    pub(super) fn set_condemned(&mut self, names: BTreeSet<PackName>) {
        self.condemned = Arc::new(names);
        let packs = self.packs.iter().zip(0..);
        let condemned = packs.filter(|(pack, _)| self.condemned.contains(&pack.name));
        self.condemned_places = Arc::new(condemned.map(|(_, place)| place).collect());
    }

    /// Adds a pack to the catalogue.
    pub(super) fn add_pack(&mut self, pack: PackInfo) {
        self.in_packs.add(&pack);
        if self.condemned.contains(&pack.name) {
            let place = u32::try_from(self.packs.len()).unwrap_or(u32::MAX);
            Arc::make_mut(&mut self.condemned_places).insert(place);
        }
        Arc::make_mut(&mut self.packs).push(Arc::new(pack));
    }

    /// What the blocks of a holder hold.
    pub(crate) fn kind(&self, holder: Holder) -> BlockKind {
        let kind = match holder {
            Holder::Pack(pack) => self.packs.get(pack as usize).map(|pack| pack.kind),
            Holder::Tail(tail) => self.tails.get(tail as usize).map(|tail| tail.name().kind()),
        };
        kind.unwrap_or(BlockKind::Chunks)
    }

    /// The closed pack that a holder is, if it is one.
    pub(crate) fn pack_of(&self, holder: Holder) -> Option<&PackInfo> {
        match holder {
            Holder::Pack(place) => self.packs.get(place as usize).map(|pack| &**pack),
            Holder::Tail(_) => None,
        }
    }

    /// Entries of all runs together.
    pub(crate) fn entries(&self) -> u64 {
        self.runs.iter().map(|run| run.shape().entries).sum()
    }
}
