//! How many closed objects each block holds, counted by going through all runs once.

use holdall_format::ObjectId;

use super::Index;
use super::error::IndexError;
use super::merge::RunReader;
use super::state::State;

impl Index {
    /// For each pack of the catalogue, and each of its blocks, how many of its objects are closed.
    pub(crate) fn living_in_packs(&self, state: &State) -> Result<Vec<Vec<u32>>, IndexError> {
        let none = |blocks: u64| vec![0; usize::try_from(blocks).unwrap_or_default()];
        let mut living: Vec<Vec<u32>> = state.packs.iter().map(|pack| none(pack.blocks)).collect();
        for run in &state.runs {
            let mut reader = RunReader::new(run);
            let mut at = 0;
            while let Some(entry) = reader.next_entry()? {
                let pack = living.get_mut(entry.pack as usize);
                let block = pack.and_then(|pack| pack.get_mut(entry.block as usize));
                if let Some(count) = block.filter(|_| run.closed.get(at)) {
                    *count += 1;
                }
                at += 1;
            }
        }
        Ok(living)
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
