//! How many objects each block holds, and how many of them are closed, counted by going through all runs
//! once.

use holdall_format::ObjectId;

use super::Index;
use super::error::IndexError;
use super::merge::RunReader;
use super::state::State;

/// Of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counted {
    /// How many objects it holds.
    pub(crate) objects: u32,
    /// How many of those are closed there.
    pub(crate) living: u32,
}

impl Index {
    /// Counts for each pack of the catalogue, and each of its blocks. 8 bytes for each block.
    pub(crate) fn count_in_packs(&self, state: &State) -> Result<Vec<Vec<Counted>>, IndexError> {
        let none = |blocks: u64| vec![Counted::default(); usize::try_from(blocks).unwrap_or(0)];
        let mut counted: Vec<Vec<Counted>> =
            state.packs.iter().map(|pack| none(pack.blocks)).collect();
        for run in &state.runs {
            let mut reader = RunReader::new(run);
            let mut at = 0;
            while let Some(entry) = reader.next_entry()? {
                let pack = counted.get_mut(entry.pack as usize);
                if let Some(block) = pack.and_then(|pack| pack.get_mut(entry.block as usize)) {
                    block.objects += 1;
                    block.living += u32::from(run.closed.get(at));
                }
                at += 1;
            }
        }
        Ok(counted)
    }

    /// Which of the objects of one block are closed there, in ascending order of their ids.
    pub(crate) fn living_of(
        &self,
        ids: Vec<ObjectId>,
        arrival: u64,
    ) -> Result<Vec<ObjectId>, IndexError> {
        let lookup = self.lookup(ids)?;
        let here = lookup.copies.iter().filter(|copy| copy.arrival == arrival);
        let living = here.filter(|copy| lookup.is_closed(copy));
        let mut living: Vec<ObjectId> =
            living.filter_map(|copy| lookup.ids.get(copy.question as usize).copied()).collect();
        // A block that is being moved lies in two places for a moment.
        living.dedup();
        Ok(living)
    }
}
