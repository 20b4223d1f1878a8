//! Compacting: blocks of which little is needed give way to later ones that hold only that.
//!
//! A block is sealed as a whole, so whoever has no key can only keep it or let it go. Its keeper says
//! which blocks are mostly dead ([`Store::sparse_blocks`]); a client with keys stores what is needed of
//! them again, and has the old ones be superseded ([`Store::supersede`]). That is the one exception to
//! the rule that the first copy counts, and what makes it safe is this:
//!
//! - A block is superseded only where every object that is needed of it has another sound copy, and a
//!   node one with the same references. What a chunk's copy says, only keys can tell.
//! - The old copies come behind all others that are there, and are read where another one does not open
//!   to its id. What somebody puts later comes behind them. While they are held, one can go back.
//! - What is superseded is let go by a prune, after a mark, as anything that nothing needs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use holdall_format::{MachineId, ObjectId, SessionId};
use holdall_protocol::{MAX_IDS, RepositoryError, SparseBlock};
use serde::{Deserialize, Serialize};

use crate::index::{Counted, Holder, Lookup, State};
use crate::state_files::condemned;
use crate::state_files::superseded::{self, Mark, Marks};
use crate::store::{CommitGuard, Store};

/// A block is sparse if at most one in so many of its objects is needed.
const SPARSE_ONE_IN: u32 = 2;
/// Most blocks that are told at once.
const PAGE_BLOCKS: usize = 4096;
/// Tables that are kept while copies are looked for: those of neighbours lie in few blocks.
const KEPT_TABLES: usize = 64;

/// Blocks that were superseded together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Supersession {
    /// What it is called in [`Store::let_superseded_go`] and [`Store::take_superseded_back`].
    pub number: u64,
    /// How many blocks.
    pub blocks: u64,
}

/// Where a block lies.
type Place = (Holder, u32);

impl Store {
    /// Blocks from that arrival position on of which at most half of the objects are needed, and these,
    /// in order of arrival. There may be more behind the last one; only an empty answer is the end.
    ///
    /// # Errors
    /// [`RepositoryError::Damaged`] if something is missing or cannot be read.
    pub fn sparse_blocks(&self, from: u64) -> Result<Vec<SparseBlock>, RepositoryError> {
        self.appender()?;
        if from == 0 {
            self.repair_index(&self.lock_commit())?;
            self.check_needed()?;
        }
        let state = self.index().state();
        let end = self.sessions().lowest_watermark(self.clock()).unwrap_or(u64::MAX);
        let superseded = &state.superseded.arrivals;
        let mut sparse = self.sparse_in_packs(&state)?;
        sparse.extend(sparse_in_tails(&state));
        sparse.retain(|arrival, _| {
            (from..end).contains(arrival) && !superseded.contains_key(arrival)
        });
        let (mut blocks, mut ids) = (Vec::new(), 0);
        for (arrival, place) in sparse {
            let Ok(table) = self.blocks().table(&state, place.0, place.1) else { continue };
            let objects = table.entries.len() as u64;
            let all = table.entries.iter().map(|entry| entry.id).collect();
            let living = self.index().living_of(all, arrival)?;
            ids += living.len();
            if ids > MAX_IDS || blocks.len() == PAGE_BLOCKS {
                break;
            }
            if living.is_empty() {
                // A mark came meanwhile.
                continue;
            }
            blocks.push(SparseBlock { arrival, objects, living });
        }
        Ok(blocks)
    }

    fn sparse_in_packs(&self, state: &State) -> Result<BTreeMap<u64, Place>, RepositoryError> {
        let mut sparse = BTreeMap::new();
        let counted = self.index().count_in_packs(state)?;
        for ((pack, counted), number) in state.packs.iter().zip(&counted).zip(0..) {
            let holder = Holder::Pack(number);
            if state.is_condemned(holder) || !counted.iter().any(is_sparse) {
                continue;
            }
            // A prune may have taken it meanwhile, and one that cannot be read is for a scrub to tell.
            let Ok(file) = self.packs().get(&pack.name) else { continue };
            let blocks = file.blocks().iter().zip(counted).zip(0..);
            let of_pack = blocks.filter(|((_, counted), _)| is_sparse(counted));
            sparse.extend(of_pack.map(|((place, _), block)| (place.arrival, (holder, block))));
        }
        Ok(sparse)
    }

    /// Has other copies of what is needed of these blocks count before theirs; `None` if that can be
    /// done for none of them. A block of which something needed has no other sound copy is left as it
    /// is. With `hold` the blocks stay until [`Store::let_superseded_go`], without it until a prune.
    /// Asking for the same again changes nothing.
    ///
    /// # Errors
    /// [`RepositoryError::Refused`] over [`MAX_IDS`] blocks; [`RepositoryError::Damaged`] if something
    /// is missing or cannot be read.
    pub fn supersede(
        &self,
        blocks: &[u64],
        hold: bool,
    ) -> Result<Option<Supersession>, RepositoryError> {
        if blocks.len() > MAX_IDS {
            let reason = format!("{} blocks at once, at most {MAX_IDS} are allowed", blocks.len());
            return Err(RepositoryError::Refused { reason });
        }
        self.appender()?;
        let commit = self.lock_commit();
        let arrivals = self.with_other_copies(blocks.iter().copied().collect())?;
        if arrivals.is_empty() {
            return Ok(None);
        }
        let blocks = arrivals.len() as u64;
        let marks = superseded::read_marks(self.layout())?.readable;
        if let Some(same) = marks.iter().find(|mark| mark.arrivals == arrivals) {
            return Ok(Some(Supersession { number: same.number, blocks }));
        }
        let number = self.log().take();
        self.lease().renew()?;
        superseded::write(self.layout(), &Mark { number, is_held: hold, arrivals })?;
        self.count_anew(&commit)?;
        Ok(Some(Supersession { number, blocks }))
    }

    /// Ends a session in which a machine put what others gave way to: nothing needs to wait until it
    /// lapses. One that is not there ended before.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn end_session(
        &self,
        machine: &MachineId,
        session: &SessionId,
    ) -> Result<(), RepositoryError> {
        self.sessions().end_own(session, machine)
    }

    /// The numbers of what was superseded and is held.
    ///
    /// # Errors
    /// If it cannot be seen which there are.
    pub fn held_supersessions(&self) -> Result<Vec<u64>, RepositoryError> {
        let Marks { readable, unreadable } = superseded::read_marks(self.layout())?;
        let held = readable.iter().filter(|mark| mark.is_held).map(|mark| mark.number);
        Ok(held.chain(unreadable).collect())
    }

    /// Has a prune take the blocks of that mark, once more if what is needed of them is elsewhere; says
    /// whether it may. One that is not there was let go, or taken back.
    ///
    /// # Errors
    /// [`RepositoryError::Damaged`] if something cannot be read; if it cannot be written.
    pub fn let_superseded_go(&self, number: u64) -> Result<bool, RepositoryError> {
        self.appender()?;
        let _commit = self.lock_commit();
        let marks = superseded::read_marks(self.layout())?.readable;
        let held = marks.iter().find(|mark| mark.number == number && mark.is_held);
        let Some(held) = held else { return Ok(true) };
        let stored = self.blocks_at(&self.index().state(), &held.arrivals)?;
        if self.with_other_copies(held.arrivals.clone())?.len() < stored.len() {
            return Ok(false);
        }
        self.lease().renew()?;
        superseded::let_go(self.layout(), held)?;
        self.index().learn_superseded(superseded::read_all(self.layout())?);
        Ok(true)
    }

    /// Has the blocks of that mark count first again, as if nobody had asked.
    ///
    /// # Errors
    /// [`RepositoryError::Damaged`] if something is missing or cannot be read.
    pub fn take_superseded_back(&self, number: u64) -> Result<(), RepositoryError> {
        self.appender()?;
        let commit = self.lock_commit();
        self.lease().renew()?;
        superseded::remove_mark(self.layout(), number)?;
        self.count_anew(&commit)
    }

    /// Forgets marks none of whose blocks is stored any more.
    pub(crate) fn forget_spent_marks(
        &self,
        _commit: &CommitGuard<'_>,
    ) -> Result<(), RepositoryError> {
        let marks = superseded::read_marks(self.layout())?.readable;
        if marks.is_empty() {
            return Ok(());
        }
        let state = self.index().state();
        let all = marks.iter().flat_map(|mark| mark.arrivals.iter().copied()).collect();
        // What is in a pack that cannot be read nobody knows; such marks can wait.
        let Ok(stored) = self.blocks_at(&state, &all) else { return Ok(()) };
        let is_spent = |mark: &&Mark| !mark.arrivals.iter().any(|one| stored.contains_key(one));
        for mark in marks.iter().filter(is_spent) {
            superseded::remove_mark(self.layout(), mark.number)?;
        }
        self.index().learn_superseded(superseded::read_all(self.layout())?);
        self.note_newest_mark()
    }

    /// Takes in the marks that there are, and finds anew what is closed, since other copies count first.
    /// What is saved meanwhile has the former number, so that no later start believes it.
    fn count_anew(&self, commit: &CommitGuard<'_>) -> Result<(), RepositoryError> {
        self.index().learn_superseded(superseded::read_all(self.layout())?);
        if let Err(error) = self.mark_needed(commit) {
            self.index().forget_closed();
            self.mark_records(commit)?;
            return Err(error);
        }
        self.note_newest_mark()?;
        self.index().save()
    }

    /// Has what is closed now be believed at the next start, with the marks that there are.
    fn note_newest_mark(&self) -> Result<(), RepositoryError> {
        let newest = self.index().state().superseded.newest;
        self.index().set_pruned(condemned::last_prune(self.layout())?.max(newest));
        Ok(())
    }

    /// Those of these blocks that are stored, and of which all that is needed is elsewhere too.
    fn with_other_copies(&self, arrivals: BTreeSet<u64>) -> Result<BTreeSet<u64>, RepositoryError> {
        let state = self.index().state();
        let found = self.blocks_at(&state, &arrivals)?;
        let mut elsewhere = Elsewhere { store: self, arrivals, tables: HashMap::new() };
        let mut good = BTreeSet::new();
        for (arrival, place) in found {
            good.extend(elsewhere.has_all_of(place, &state)?.then_some(arrival));
        }
        Ok(good)
    }

    /// Where blocks that came at these positions lie, as far as they are stored.
    fn blocks_at(
        &self,
        state: &State,
        arrivals: &BTreeSet<u64>,
    ) -> Result<BTreeMap<u64, Place>, RepositoryError> {
        let mut found = BTreeMap::new();
        for (pack, number) in state.packs.iter().zip(0..) {
            if arrivals.range(pack.first_arrival..=pack.last_arrival).next().is_none() {
                continue;
            }
            let file = self.packs().get(&pack.name)?;
            for (place, block) in file.blocks().iter().zip(0..) {
                if arrivals.contains(&place.arrival) {
                    found.insert(place.arrival, (Holder::Pack(number), block));
                }
            }
        }
        for (tail, number) in state.tails.iter().zip(0..) {
            for (clear, block) in tail.all_clear().iter().zip(0..) {
                if arrivals.contains(&clear.arrival) {
                    found.insert(clear.arrival, (Holder::Tail(number), block));
                }
            }
        }
        Ok(found)
    }
}

fn is_sparse(block: &Counted) -> bool {
    block.living > 0 && block.living * SPARSE_ONE_IN <= block.objects
}

fn sparse_in_tails(state: &State) -> BTreeMap<u64, Place> {
    let mut sparse = BTreeMap::new();
    for (tail, number) in state.tails.iter().zip(0..) {
        let mut counted: BTreeMap<u32, Counted> = BTreeMap::new();
        for (_, object) in tail.objects().iter() {
            let block = counted.entry(object.block).or_default();
            block.objects += 1;
            block.living += u32::from(object.closed);
        }
        for (block, _) in counted.into_iter().filter(|(_, counted)| is_sparse(counted)) {
            let arrival = tail.clear(block).map(|clear| clear.arrival);
            sparse.extend(arrival.map(|arrival| (arrival, (Holder::Tail(number), block))));
        }
    }
    sparse
}

/// Looking for other copies. The tables of sound blocks are kept, of others nothing.
struct Elsewhere<'a> {
    store: &'a Store,
    /// Blocks whose copies do not count.
    arrivals: BTreeSet<u64>,
    tables: HashMap<Place, HashMap<ObjectId, Vec<ObjectId>>>,
}

impl Elsewhere<'_> {
    /// Whether what is needed of a block is.
    fn has_all_of(&mut self, place: Place, state: &State) -> Result<bool, RepositoryError> {
        let Ok(table) = self.store.blocks().table(state, place.0, place.1) else {
            return Ok(false);
        };
        let ids = table.entries.iter().map(|entry| entry.id).collect();
        let lookup = self.store.index().lookup(ids)?;
        // By whichever copy: what gave way before counts elsewhere.
        let is_needed =
            |id: &ObjectId| lookup.copies_of_id(id).iter().any(|copy| lookup.is_closed(copy));
        let mut entries = table.entries.iter();
        Ok(entries.all(|entry| match self.first_other(&lookup, &entry.id) {
            // What is not needed now may be tomorrow, and by the references of what counts then.
            Some(other) => self.sound_table(state, other).get(&entry.id) == Some(&entry.refs),
            None => !is_needed(&entry.id),
        }))
    }

    /// Where the copy lies that would count.
    fn first_other(&self, lookup: &Lookup, id: &ObjectId) -> Option<Place> {
        let mut copies = lookup.copies_of_id(id).iter();
        let first = copies.find(|copy| !self.arrivals.contains(&copy.arrival));
        first.map(|copy| (copy.holder, copy.block))
    }

    /// What a block holds, by its table; nothing if it differs from what was stored.
    fn sound_table(&mut self, state: &State, place: Place) -> &HashMap<ObjectId, Vec<ObjectId>> {
        if self.tables.len() > KEPT_TABLES && !self.tables.contains_key(&place) {
            self.tables.clear();
        }
        self.tables.entry(place).or_insert_with(|| {
            let is_sound = self.store.blocks().read_block(state, place.0, place.1).is_ok();
            let table =
                is_sound.then(|| self.store.blocks().table(state, place.0, place.1).ok()).flatten();
            let entries = table.into_iter().flat_map(|table| table.entries);
            entries.map(|entry| (entry.id, entry.refs)).collect()
        })
    }
}
