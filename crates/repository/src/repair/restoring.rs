//! Restoring a pack from its parity.

use std::collections::BTreeSet;

use holdall_format::PackName;
use holdall_protocol::{Repair, RepositoryError, ScrubDamage, ScrubReport};
use holdall_sys::PathBeneath;

use crate::pack_file::read_footer;
use crate::parity::{self, PackParity};
use crate::scrub::is_sound_pack;
use crate::storage::publish::failed;
use crate::storage::retry::split_process_errors;
use crate::store::Store;

impl Store {
    /// Makes a pack what it was; `None` if its parity does not suffice or there is none.
    pub(super) fn restore_pack(
        &self,
        pack: &PackName,
        dry_run: bool,
        quarantined: &mut Vec<String>,
    ) -> Result<Option<Repair>, RepositoryError> {
        let Some(remade) = self.remake(pack)? else { return Ok(None) };
        if dry_run {
            remade.remove()?;
        } else {
            self.put_in_place(pack, &remade, quarantined)?;
        }
        Ok(Some(Repair::Restored { pack: *pack, pieces: remade.pieces }))
    }

    /// The packs of which nothing but the parity is left, if anything is missing that snapshots need. Else nobody
    /// misses them: they went with a prune that a crash cut short.
    pub(super) fn lost_packs(
        &self,
        found: &ScrubReport,
    ) -> Result<BTreeSet<PackName>, RepositoryError> {
        let is_missing = |damage: &ScrubDamage| matches!(damage, ScrubDamage::Missing { .. });
        if !found.damaged.iter().any(is_missing) {
            return Ok(BTreeSet::new());
        }
        let is_gone = |pack: &PackName| self.layout().pack(pack).is_there().is_ok_and(|is| !is);
        // In this order: of one that a prune deletes just now, the mark goes last.
        let is_lost =
            |pack: &PackName| is_gone(pack) && !self.index().state().condemned.contains(pack);
        Ok(parity::packs(self.layout())?.into_iter().filter(is_lost).collect())
    }

    /// Makes a pack anew of which nothing but the parity is left; `None` also if all that it holds is stored
    /// elsewhere. One that nobody needs after all goes with the next prune.
    pub(super) fn restore_lost(
        &self,
        pack: &PackName,
        dry_run: bool,
    ) -> Result<Option<Repair>, RepositoryError> {
        let Some(remade) = self.remake(pack)? else { return Ok(None) };
        let is_missed = self.holds_what_is_missing(&remade.path);
        if dry_run || !matches!(is_missed, Ok(true)) {
            remade.remove()?;
        } else {
            self.put_in_place(pack, &remade, &mut Vec::new())?;
        }
        Ok(is_missed?.then_some(Repair::Restored { pack: *pack, pieces: remade.pieces }))
    }

    /// Makes in `tmp` what a pack was.
    fn remake(&self, pack: &PackName) -> Result<Option<Remade>, RepositoryError> {
        // Parity that cannot be read is as good as none.
        let opened = split_process_errors(PackParity::open(self.layout(), pack))?;
        let Ok(Some(parity)) = opened else { return Ok(None) };
        let path = self.layout().pack_file(pack)?;
        let soundness = parity.compare(&path)?;
        if !soundness.suffices() {
            return Ok(None);
        }
        let pieces = soundness.damaged_data() as u64;
        let path = parity.restore(&path, &soundness, &self.layout().tmp())?;
        let remade = Remade { path, pieces };
        if !is_sound_pack(&remade.path, remade.path.open(), pack, &self.repository())? {
            // It was made of something that was damaged already.
            remade.remove()?;
            return Ok(None);
        }
        Ok(Some(remade))
    }

    /// Whether of anything in that pack no copy counts as there.
    fn holds_what_is_missing(&self, path: &PathBeneath) -> Result<bool, RepositoryError> {
        let file = path.open().map_err(failed("opening", path))?;
        let (_, footer) = read_footer(path, &file, &self.repository())?;
        for block in &footer.blocks {
            let ids = block.table()?.entries.iter().map(|entry| entry.id).collect();
            let lookup = self.index().lookup(ids)?;
            if (0..lookup.ids.len()).any(|question| lookup.copies_of(question).is_empty()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Gives what was made the pack's name; what had it is put aside.
    fn put_in_place(
        &self,
        pack: &PackName,
        remade: &Remade,
        quarantined: &mut Vec<String>,
    ) -> Result<(), RepositoryError> {
        let path = self.layout().pack_file(pack)?;
        self.lease().renew()?;
        if path.exists() {
            let aside = self.quarantine(pack)?;
            self.layout().pack(pack).keep_as(&aside)?;
            quarantined.push(aside.display().to_string());
        }
        self.layout().placed().map_or(Ok(()), |placed| placed.put_anew(&remade.path, pack))?;
        self.packs().forget(|name| name == pack);
        self.forget_unreadable(self.layout().pack(pack).path());
        Ok(())
    }
}

/// What a pack was, in a file of its own.
struct Remade {
    path: PathBeneath,
    /// So many shards of the pack were damaged.
    pieces: u64,
}

impl Remade {
    fn remove(&self) -> Result<(), RepositoryError> {
        self.path.remove_file().map_err(failed("removing", &self.path))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use holdall_protocol::{RepairReport, Repository, SessionPurpose};

    use crate::place::{Place, id};

    impl Place {
        fn has_parity(&self) {
            self.store.appender().unwrap().close_open_tail(false);
            self.store.appender().unwrap().close_open_tail(true);
            self.store.keep_parity(5, &AtomicBool::new(false)).unwrap();
        }

        fn repair(&self, dry_run: bool) -> RepairReport {
            self.store.repair(dry_run, &AtomicBool::new(false), &mut |_| {}).unwrap()
        }

        /// The same repository, opened again, with nothing left of its packs but their parity.
        fn without_packs(self) -> Self {
            for pack in self.store.index().state().packs.iter() {
                std::fs::remove_file(self.store.layout().pack(&pack.name).path()).unwrap();
            }
            self.opened_without_cache()
        }
    }

    #[test]
    fn packs_of_which_only_the_parity_is_left_are_restored_after_a_restart_too() {
        let place = Place::new();
        let session = place.session();
        let put = |block| {
            place.machine().put_blocks(&session, &[block]).unwrap();
        };
        put(place.forge.chunks_of_bytes(&[id(2)], 1000));
        put(place.forge.nodes(&[(id(1), &[id(2)])]));
        place.has_parity();
        // That the chunk is missing shows only once the node is there.
        put(place.forge.nodes(&[(id(0), &[id(1)])]));
        place.commit_root(&session, id(0));
        let place = place.without_packs();

        let foreseen = place.repair(true);
        assert_eq!(foreseen.repairs.len(), 2, "{foreseen:?}");
        let repaired = place.repair(false);
        assert_eq!(repaired.repairs, foreseen.repairs);
        assert_eq!((repaired.scrub.damaged, repaired.quarantined), (vec![], vec![]));
        assert_eq!(place.repair(false).repairs, [], "once is enough");
        let session = place.machine().open_session(&SessionPurpose::Read).unwrap().session;
        for object in [1, 2].map(id) {
            let fetched = place.machine().fetch_objects(&session, &[object], 0).unwrap();
            assert_eq!(fetched.blocks.len(), 1);
        }
    }

    #[test]
    fn a_pack_that_nobody_misses_does_not_come_back_with_the_parity_that_a_crash_left() {
        let place = Place::new();
        let block = place.forge.chunks_of_bytes(&[id(1)], 1000);
        place.machine().put_blocks(&place.session(), &[block]).unwrap();
        place.has_parity();
        let place = place.without_packs();
        let repaired = place.repair(false);
        assert_eq!((repaired.repairs, repaired.scrub.damaged), (vec![], vec![]));
    }
}
