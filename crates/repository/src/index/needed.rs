//! Which blocks of packs hold something that is needed, from the marks in the index.
//!
//! All runs are gone through once, side by side, so that all copies of an object are seen together:
//! one bit for each block is all that is kept, however many objects there are. Tails are asked where no copy
//! in a pack is marked.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdall_format::ObjectId;

use super::Index;
use super::bits::Bits;
use super::entry::Entry;
use super::error::IndexError;
use super::merge::RunReader;
use super::run::Run;
use super::state::{Holder, State};
use crate::tails::objects::Mark;

/// A block in a pack of the catalogue.
pub(crate) type PlaceOfBlock = (u32, u32);

/// Which blocks are needed.
#[derive(Debug)]
pub(crate) struct NeededBlocks {
    /// The moment for which it holds.
    pub(crate) state: Arc<State>,
    /// For each pack of the catalogue, a flag for each block.
    packs: Vec<Vec<bool>>,
    /// Blocks, in packs or tails, that hold the first copy of objects of which others lie in packs, with those
    /// others: they are needed if the first one cannot be read.
    pub(crate) spare: BTreeMap<(Holder, u32), Vec<PlaceOfBlock>>,
}

impl NeededBlocks {
    fn of(state: Arc<State>) -> Self {
        let flags = |blocks: u64| vec![false; usize::try_from(blocks).unwrap_or_default()];
        let packs = state.packs.iter().map(|pack| flags(pack.blocks)).collect();
        Self { state, packs, spare: BTreeMap::new() }
    }

    /// A flag for each block of a pack.
    pub(crate) fn of_pack(&self, place: u32) -> &[bool] {
        self.packs.get(place as usize).map(Vec::as_slice).unwrap_or_default()
    }

    /// Has a block be needed.
    pub(crate) fn need(&mut self, (pack, block): PlaceOfBlock) {
        let flags = self.packs.get_mut(pack as usize);
        if let Some(flag) = flags.and_then(|flags| flags.get_mut(block as usize)) {
            *flag = true;
        }
    }

    /// Takes in all copies of one object that lie in packs, in order of arrival, and whether each is marked.
    fn judge(&mut self, mark: Mark, copies: &[(Entry, bool)], is_kept: &impl Fn(u64) -> bool) {
        let place = |entry: &Entry| (entry.pack, entry.block);
        let marked = copies.iter().find(|(_, is_marked)| *is_marked);
        let first = match marked {
            Some((entry, _)) => Some((Holder::Pack(entry.pack), entry.block)),
            None => copies.first().and_then(|(entry, _)| self.marked_in_tail(&entry.id, mark)),
        };
        for (entry, is_marked) in copies {
            if *is_marked || is_kept(entry.arrival) {
                self.need(place(entry));
            } else if let Some(first) = first {
                let others = self.spare.entry(first).or_default();
                if others.last() != Some(&place(entry)) {
                    others.push(place(entry));
                }
            }
        }
    }

    /// The block of a tail that holds the marked copy of an object.
    fn marked_in_tail(&self, id: &ObjectId, mark: Mark) -> Option<(Holder, u32)> {
        self.state.tails.iter().zip(0..).find_map(|(tail, number)| {
            let objects = tail.objects();
            let marked = objects.copies(id).find(|object| mark.is_on(object));
            marked.map(|object| (Holder::Tail(number), object.block))
        })
    }
}

impl Index {
    /// Finds the blocks of packs that hold something so marked, or are kept, by arrival position.
    /// Condemned packs hold nothing that is needed. Whoever asks holds the commit lock, so that the
    /// marks stay as they are, unless all are thrown away.
    pub(crate) fn needed_blocks(
        &self,
        mark: Mark,
        is_kept: impl Fn(u64) -> bool,
    ) -> Result<NeededBlocks, IndexError> {
        let state = self.state();
        let mut needed = NeededBlocks::of(state.clone());
        let mut sides: Vec<Side<'_>> = state.runs.iter().map(|run| Side::of(run, mark)).collect();
        let mut copies = Vec::new();
        loop {
            let mut first = None;
            for side in &mut sides {
                let id = side.reader.peek()?.map(|entry| entry.id);
                first = [first, id].into_iter().flatten().min();
            }
            let Some(id) = first else { return Ok(needed) };
            copies.clear();
            for side in &mut sides {
                while side.reader.peek()?.is_some_and(|entry| entry.id == id) {
                    copies.extend(side.take()?);
                }
            }
            copies.retain(|(entry, _)| !state.is_condemned(Holder::Pack(entry.pack)));
            copies.sort_unstable_by_key(|(entry, _)| entry.arrival);
            needed.judge(mark, &copies, &is_kept);
        }
    }
}

/// One run, as far as it was read.
struct Side<'a> {
    marks: &'a Bits,
    reader: RunReader<'a>,
    at: u64,
}

impl<'a> Side<'a> {
    fn of(run: &'a Run, mark: Mark) -> Self {
        let marks = match mark {
            Mark::Closed => &run.closed,
            Mark::Tentative => &run.tentative,
        };
        Self { marks, reader: RunReader::new(run), at: 0 }
    }

    /// The next entry and whether it is marked.
    fn take(&mut self) -> Result<Option<(Entry, bool)>, IndexError> {
        let taken = self.reader.next_entry()?;
        let is_marked = self.marks.get(self.at);
        self.at += 1;
        Ok(taken.map(|entry| (entry, is_marked)))
    }
}
