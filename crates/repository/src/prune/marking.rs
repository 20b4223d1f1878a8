//! The mark: what records and live sessions reach is closed, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use holdall_format::{ObjectId, RecordHash, RecordKind, record_file};
use holdall_protocol::RepositoryError;

use crate::index::Holder;
use crate::prune::move_blocks::IfDamaged;
use crate::reachability::closure::Descend;
use crate::records::entry::RecordEntry;
use crate::records::files;
use crate::state_files::superseded;
use crate::storage::layout::number_of;
use crate::storage::publish::damaged;
use crate::store::{CommitGuard, Store};
use crate::tails::objects::Mark;

/// Of so many roots of forgotten records that live sessions build on it is looked whether anything is
/// missing, which is a walk for each. Who builds on another puts again what only that one still had.
const PARENTS_MOST: usize = 64;
/// So often is it marked anew where marks are thrown away meanwhile.
const TRIES: usize = 3;

/// What was found to be needed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marked {
    /// The marks that say it.
    pub(crate) mark: Mark,
    /// Of the index's state, when it was begun to mark: in a later one, marks are missing.
    pub(crate) generation: u64,
}

impl Store {
    /// Has exactly that be closed which is needed. What a condemned pack should not have lost is
    /// copied out of it first.
    ///
    /// # Errors
    /// [`RepositoryError::Damaged`] if anything that is needed is missing, or a file cannot be read
    /// of which nobody knows what it needs or holds.
    pub(crate) fn mark_needed(&self, commit: &CommitGuard<'_>) -> Result<Marked, RepositoryError> {
        self.check_readable()?;
        let position = self.log().next();
        for _ in 0..TRIES {
            let generation = self
                .mark_all_but(commit, &BTreeSet::new(), |missing| self.rescue(commit, missing))?;
            if self.index().close_only_tentative(position.saturating_sub(1), generation) {
                return Ok(Marked { mark: Mark::Closed, generation });
            }
        }
        let what = "the index".to_owned();
        let reason = format!("{TRIES} times what was marked in it was thrown away meanwhile");
        Err(RepositoryError::Damaged { what, reason })
    }

    /// Marks what would be needed without those records, and leaves what is closed as it is. Nothing is
    /// written. Whoever asks drops the marks.
    ///
    /// # Errors
    /// As for [`Store::mark_needed`], also where something is missing of those records.
    pub(super) fn mark_without(
        &self,
        commit: &CommitGuard<'_>,
        forgotten: &BTreeSet<RecordHash>,
    ) -> Result<Marked, RepositoryError> {
        self.check_readable()?;
        let mut generation = self.mark_all_but(commit, &BTreeSet::new(), |_| Ok(false))?;
        if !forgotten.is_empty() {
            generation = self.mark_all_but(commit, forgotten, |_| Ok(false))?;
        }
        Ok(Marked { mark: Mark::Tentative, generation })
    }

    /// Says if a record is lost, or a file cannot be read, of which nobody knows what it needs or holds.
    pub(crate) fn check_readable(&self) -> Result<(), RepositoryError> {
        if let Some((path, reason)) = self.lost_records().next() {
            return Err(damaged(&*path, format!("{reason}; nothing is deleted while it is so")));
        }
        if let Some((path, reason)) = self.unreadable() {
            let way_out = match files::position_of(self.layout(), &path) {
                Some(at) => format!(
                    ": put a copy of the file back, or run `holdall check --repair` on a computer that saw it, in a \
                     directory with `--record {}` if nothing shows which record that was",
                    record_file(at)
                ),
                None if path.starts_with(self.layout().tombstones().path()) => {
                    ": put a copy of the file back, or run `holdall check --repair`, which moves it away".to_owned()
                }
                None => String::new(),
            };
            let reason = format!("{reason}; nothing is deleted while it is so{way_out}");
            return Err(damaged(&*path, reason));
        }
        if let Some(mark) = self.index().state().superseded.unreadable {
            let path = superseded::held_file(self.layout(), mark);
            let reason =
                "it cannot be read, and may hold any block; nothing is deleted while it is so";
            return Err(damaged(&path, reason));
        }
        Ok(())
    }

    /// Marks what all roots reach but those, unless something is missing that cannot be rescued. Says in which
    /// generation it began.
    fn mark_all_but(
        &self,
        commit: &CommitGuard<'_>,
        forgotten: &BTreeSet<RecordHash>,
        rescue: impl Fn(&[ObjectId]) -> Result<bool, RepositoryError>,
    ) -> Result<u64, RepositoryError> {
        loop {
            self.index().drop_tentative();
            let generation = self.index().state().generation;
            let marked = self.mark_roots(commit, forgotten);
            if let Ok(None) = marked {
                return Ok(generation);
            }
            self.index().drop_tentative();
            let Some((snapshot, missing)) = marked? else { continue };
            if !rescue(&missing)? {
                let what = format!("snapshot {snapshot}");
                let reason = format!(
                    "{} objects that it needs are missing; nothing is deleted while it is so",
                    missing.len()
                );
                return Err(RepositoryError::Damaged { what, reason });
            }
        }
    }

    /// Marks what all roots reach but those; stops at the first record of which something is missing.
    fn mark_roots(
        &self,
        commit: &CommitGuard<'_>,
        forgotten: &BTreeSet<RecordHash>,
    ) -> Result<Option<(RecordHash, Vec<ObjectId>)>, RepositoryError> {
        let parents = self.whole_parents(commit, forgotten)?;
        for entry in self.records().after(0) {
            if entry.kind == RecordKind::Amendment || forgotten.contains(&entry.hash) {
                continue;
            }
            let missing = self.descend(commit, entry.root, Descend::Everything)?;
            if !missing.is_empty() {
                return Ok(Some((entry.hash, missing)));
            }
        }
        for root in parents {
            self.descend(commit, root, Descend::Everything)?;
        }
        Ok(None)
    }

    /// The roots of the newest forgotten records that live sessions build on, and of which nothing is
    /// missing. One that was pruned before its session began lacks something, and what is left of it must
    /// not be taken for closed: a commit would stop there.
    fn whole_parents(
        &self,
        commit: &CommitGuard<'_>,
        forgotten: &BTreeSet<RecordHash>,
    ) -> Result<Vec<ObjectId>, RepositoryError> {
        let parents = self.sessions().live_parents(self.clock());
        let known = self.records().known_of(&parents);
        let is_forgotten =
            |entry: &&RecordEntry| entry.forgotten || forgotten.contains(&entry.hash);
        let newest_first = known.iter().rev().filter(is_forgotten).map(|entry| entry.root);
        let mut seen = BTreeSet::new();
        let mut whole = Vec::new();
        for root in newest_first.filter(|root| seen.insert(*root)).take(PARENTS_MOST) {
            let missing = self.descend(commit, root, Descend::Everything)?;
            self.index().drop_tentative();
            whole.extend(missing.is_empty().then_some(root));
        }
        Ok(whole)
    }

    /// A record, pack, folder of packs or tail that cannot be read. What others put among them is none.
    fn unreadable(&self) -> Option<(PathBuf, String)> {
        let left_out = self.left_out();
        let is_ours = |path: &Path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_record = number_of(name).is_some();
            let is_pack = name.parse::<holdall_format::PackName>().is_ok();
            is_record
                || is_pack
                || left_out.iter().any(|one| one.path() == path)
                || path.starts_with(self.layout().tails().path())
        };
        self.unreadable_files().into_iter().find(|(path, _)| is_ours(path))
    }

    /// Copies blocks with these objects out of condemned packs; says whether there were any.
    fn rescue(
        &self,
        commit: &CommitGuard<'_>,
        missing: &[ObjectId],
    ) -> Result<bool, RepositoryError> {
        let lookup = self.lookup_stored_holding(commit, missing.to_vec())?;
        let mut blocks: BTreeMap<Holder, BTreeSet<u32>> = BTreeMap::new();
        for copy in lookup.copies.iter().filter(|copy| lookup.state.is_condemned(copy.holder)) {
            blocks.entry(copy.holder).or_default().insert(copy.block);
        }
        for (holder, blocks) in &blocks {
            if let Some(pack) = lookup.state.pack_of(*holder) {
                let file = self.packs().get(&pack.name)?;
                let places = blocks.iter().filter_map(|number| file.blocks().get(*number as usize));
                self.move_blocks(pack.kind, &file, places, IfDamaged::Fail)?;
            }
        }
        Ok(!blocks.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use holdall_format::TombstoneReason;
    use holdall_protocol::Repository;

    use super::*;
    use crate::place::{Place, id};

    /// Snapshots with these roots, which are forgotten, and a session for each that builds on it.
    fn with_forgotten_parents(roots: &[ObjectId]) -> Place {
        let place = Place::new();
        let distinct: BTreeSet<_> = roots.iter().copied().collect();
        let nodes: Vec<(ObjectId, &[ObjectId])> =
            distinct.iter().map(|id| (*id, &[][..])).collect();
        place.machine().put_blocks(&place.session(), &[place.forge.nodes(&nodes)]).unwrap();
        roots.iter().for_each(|root| place.commit_root(&place.session(), *root));
        let ids: Vec<_> = place.store.records().after(0).iter().map(|entry| entry.hash).collect();
        place.store.forget(&ids, TombstoneReason::Retention).unwrap();
        for id in ids {
            place.session_on(&[id]);
        }
        place
    }

    #[test]
    fn each_root_that_sessions_build_on_is_walked_once_and_only_the_newest_are() {
        let same = with_forgotten_parents(&[id(1); 5]);
        let whole = |place: &Place| {
            place.store.whole_parents(&place.store.lock_commit(), &BTreeSet::new()).unwrap()
        };
        assert_eq!(whole(&same), [id(1)]);
        let roots: Vec<ObjectId> = (1..80).map(id).collect();
        let newest: Vec<ObjectId> = roots.iter().rev().take(PARENTS_MOST).copied().collect();
        assert_eq!(whole(&with_forgotten_parents(&roots)), newest);
    }
}
