//! Carrying out: copying what is needed, condemning packs, deleting them when their grace is over.

use std::collections::BTreeSet;

use holdall_format::PackName;
use holdall_protocol::{PruneReport, RepositoryError};

use super::PruneOptions;
use super::plan::Candidate;
use crate::index::Holder;
use crate::pack_file::PackFile;
use crate::parity;
use crate::prune::move_blocks::IfDamaged;
use crate::state_files::condemned::{self, Condemned};
use crate::storage::Stored;
use crate::storage::retry::says_lost;
use crate::store::{CommitGuard, Store};

/// A condemned pack whose grace is over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Due {
    pub(super) name: PackName,
    pub(super) file_bytes: u64,
}

impl Store {
    /// Copies what is needed of a pack and condemns it, unless somebody came to rely on it. Commits
    /// wait meanwhile.
    ///
    /// # Errors
    /// [`RepositoryError::NoRoom`] for the copies; then the pack stays as it is.
    pub(super) fn condemn(
        &self,
        candidate: &Candidate,
        options: &PruneOptions,
        report: &mut PruneReport,
    ) -> Result<(), RepositoryError> {
        let _commit = self.lock_commit();
        let state = self.index().state();
        let mut packs = state.packs.iter().zip(0..);
        let Some((pack, place)) = packs.find(|(pack, _)| pack.name == candidate.name) else {
            return Ok(());
        };
        if self.sessions().relied_on(self.clock()).has(pack) {
            return Ok(());
        }
        let Ok(file) = self.packs().get(&pack.name) else {
            // One that cannot be read is for a scrub to tell, and stays.
            return Ok(());
        };
        let needed = self.needed_of(&file, Holder::Pack(place), &candidate.needed)?;
        let places = needed.iter().filter_map(|number| file.blocks().get(*number as usize));
        let moved = match self.move_blocks(pack.kind, &file, places, IfDamaged::Fail) {
            // What is damaged may be repaired: it stays as it is.
            Err(error) if says_lost(&error) => return Ok(()),
            moved => moved?,
        };
        let mark = Condemned { since_ns: self.now_ns(), log_position: self.log().next() };
        self.lease().renew()?;
        match condemned::write(self.layout(), &pack.name, &mark) {
            // Nobody is to ask since when, and a full disk has room for a name.
            Err(RepositoryError::NoRoom { .. }) if options.grace.is_zero() => {
                condemned::write_name(self.layout(), &pack.name)?;
            }
            written => written?,
        }
        self.index().condemn(pack.name);
        report.condemned_packs += 1;
        report.condemned_bytes += pack.file_bytes;
        report.moved_bytes += moved.bytes;
        Ok(())
    }

    /// The blocks of a pack that were needed when the plan was made, or hold something that was closed
    /// since and not by copying the same block out of another pack, or are kept.
    fn needed_of(
        &self,
        file: &PackFile,
        holder: Holder,
        planned: &[bool],
    ) -> Result<Vec<u32>, RepositoryError> {
        let is_kept = self.kept_arrivals();
        let mut needed = Vec::new();
        for (place, number) in file.blocks().iter().zip(0..) {
            let ids = file.read_table(place)?.entries.iter().map(|entry| entry.id).collect();
            let lookup = self.index().lookup(ids)?;
            let here = lookup.copies.iter().filter(|copy| copy.is_at(holder, number));
            let mut closed = here.filter(|copy| lookup.is_closed(copy));
            let was_needed = planned.get(number as usize).is_some_and(|needed| *needed);
            if was_needed
                || is_kept(place.arrival)
                || closed.any(|copy| !lookup.is_closed_elsewhere(copy))
            {
                needed.push(number);
            }
        }
        Ok(needed)
    }

    /// Condemned packs whose grace is over and which nobody may be reading.
    pub(super) fn due(&self, options: &PruneOptions) -> Result<Vec<Due>, RepositoryError> {
        let is_due = |mark: &Condemned| {
            if options.grace.is_zero() && mark.is_unreadable() {
                // Whenever that was, it is over.
                return true;
            }
            let is_over = self.passed_ns(mark.since_ns) >= options.grace_ns();
            let is_read = self.sessions().reads_since(mark.log_position, self.clock());
            is_over && (options.grace.is_zero() || !is_read)
        };
        let state = self.index().state();
        let mut marks = condemned::read_all(self.layout())?;
        // What the mark left out, and nothing that a look at the disk finds now.
        marks.retain(|name, _| state.condemned.contains(name));
        let length = |name: &PackName| {
            let pack = state.packs.iter().find(|pack| pack.name == *name);
            pack.map_or(0, |pack| pack.file_bytes)
        };
        let due = marks.iter().filter(|(_, mark)| is_due(mark));
        Ok(due.map(|(name, _)| Due { name: *name, file_bytes: length(name) }).collect())
    }

    /// Deletes the packs that are due. The caller marked with them left out, and nothing was missing.
    pub(super) fn delete_due(
        &self,
        _commit: &CommitGuard<'_>,
        options: &PruneOptions,
        report: &mut PruneReport,
    ) -> Result<(), RepositoryError> {
        let due = self.due(options)?;
        if due.is_empty() {
            return Ok(());
        }
        let names: BTreeSet<PackName> = due.iter().map(|due| due.name).collect();
        self.lease().renew()?;
        self.packs().forget(|name| names.contains(name));
        let paths: Vec<Stored> = names.iter().map(|name| self.layout().pack(name)).collect();
        paths.iter().try_for_each(Stored::remove)?;
        parity::remove_of(self.layout(), names.iter())?;
        let mut folders: Vec<_> = paths.iter().filter_map(Stored::parent).collect();
        folders.sort_by(|one, other| one.path().cmp(other.path()));
        folders.dedup();
        // A mark may have outlived its pack, and that its folder.
        let mut there = folders.into_iter().filter(|folder| folder.is_folder());
        there.try_for_each(|folder| folder.sync())?;
        report.deleted_packs += due.len() as u64;
        report.deleted_bytes += due.iter().map(|due| due.file_bytes).sum::<u64>();
        condemned::remove_marks(self.layout(), names.iter())?;
        self.index().remove_packs(&names)?;
        self.save_index_if_room()
    }

    /// Counts the condemned packs that are still there, and tells when the first of them is due.
    pub(super) fn count_waiting(
        &self,
        options: &PruneOptions,
        report: &mut PruneReport,
    ) -> Result<(), RepositoryError> {
        let state = self.index().state();
        for (name, mark) in condemned::read_all(self.layout())? {
            let pack = state.packs.iter().find(|pack| pack.name == name);
            let due_ns = mark.since_ns.saturating_add(options.grace_ns());
            report.waiting_packs += 1;
            report.waiting_bytes += pack.map_or(0, |pack| pack.file_bytes);
            let due_ns = (!mark.is_unreadable()).then_some(due_ns);
            report.next_due_ns = [report.next_due_ns, due_ns].into_iter().flatten().min();
        }
        Ok(())
    }
}
