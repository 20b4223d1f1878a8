//! Taking packs out of the index, once their files are gone.
//!
//! Entries name packs by their places in the catalogue, so every run is written anew: a sequential
//! pass, as rare as deleting is.

use std::collections::BTreeSet;

use holdall_format::PackName;

use super::bits::Bits;
use super::entry::Entry;
use super::error::IndexError;
use super::merge::{RunReader, write_run};
use super::run::Run;
use super::state::State;
use super::{Index, lock};

impl Index {
    /// Removes packs and all entries in them; marks of others stay. No pack is added and nothing is
    /// marked meanwhile.
    pub(crate) fn remove_packs(&self, gone: &BTreeSet<PackName>) -> Result<(), IndexError> {
        let _changing = lock(&self.changing);
        let _marks = self.marks();
        let before = self.state();
        let places = places_without(&before, gone);
        let runs = before.runs.iter().map(|run| self.run_without(run, &places));
        let runs: Vec<_> = runs.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
        self.change_state(|state| {
            let mut next = State {
                condemned: state.condemned.clone(),
                superseded: state.superseded.clone(),
                tails: state.tails.clone(),
                pruned: state.pruned,
                generation: state.generation,
                ..State::default()
            };
            let kept = before.packs.iter().filter(|pack| !gone.contains(&pack.name));
            kept.for_each(|pack| next.add_pack((**pack).clone()));
            next.runs = runs.into_iter().map(Into::into).collect();
            let condemned = state.condemned.iter().filter(|name| !gone.contains(name));
            next.set_condemned(condemned.copied().collect());
            *state = next;
        });
        lock(&self.obsolete).extend(before.runs.iter().map(|run| run.path().clone()));
        Ok(())
    }

    /// A run without the entries of packs that are gone; `None` if nothing is left of it.
    fn run_without(&self, run: &Run, places: &[Option<u32>]) -> Result<Option<Run>, IndexError> {
        let moved = |entry: Entry| {
            let pack = places.get(entry.pack as usize).copied().flatten()?;
            Some(Entry { pack, ..entry })
        };
        let (mut count, mut reader) = (0, RunReader::new(run));
        while let Some(entry) = reader.next_entry()? {
            count += u64::from(moved(entry).is_some());
        }
        if count == 0 {
            return Ok(None);
        }
        let (closed, mut at, mut kept) = (Bits::clear(count), 0, 0);
        let mut reader = RunReader::new(run);
        let mut next = || -> Result<Option<Entry>, IndexError> {
            while let Some(entry) = reader.next_entry()? {
                let was_closed = run.closed.get(at);
                at += 1;
                if let Some(entry) = moved(entry) {
                    closed.put(kept, was_closed);
                    kept += 1;
                    return Ok(Some(entry));
                }
            }
            Ok(None)
        };
        let entries = std::iter::from_fn(|| next().transpose());
        let written = write_run(&self.dir, &self.repository, count, entries)?;
        Ok(Some(written.with_closed(closed)))
    }
}

/// The new place of each pack of the catalogue; `None` for those that are gone.
fn places_without(state: &State, gone: &BTreeSet<PackName>) -> Vec<Option<u32>> {
    let mut next = 0;
    let place = |name: &PackName| {
        let is_kept = !gone.contains(name);
        let place = is_kept.then_some(next);
        next += u32::from(is_kept);
        place
    };
    state.packs.iter().map(|pack| &pack.name).map(place).collect()
}
