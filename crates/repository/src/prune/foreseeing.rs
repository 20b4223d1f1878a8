//! Saying what a prune would do, and changing nothing.
//!
//! What would be needed is marked beside what is closed, and forgotten again: a prune that is under way goes by
//! what is closed.

use std::collections::BTreeSet;

use holdall_format::RecordHash;
use holdall_protocol::{PruneReport, RepositoryError};

use super::PruneOptions;
use super::marking::Marked;
use crate::store::{CommitGuard, Store};

impl Store {
    /// Says what pruning would do once those snapshots, too, are forgotten. What is told to be stored
    /// afterwards is what is left when the grace of what it condemns is over.
    ///
    /// # Errors
    /// [`RepositoryError::Damaged`] if something is missing or cannot be read: nothing would be deleted.
    pub fn foresee_prune(
        &self,
        options: &PruneOptions,
        forgotten: &[RecordHash],
    ) -> Result<PruneReport, RepositoryError> {
        self.appender()?;
        let commit = self.lock_commit();
        self.repair_index(&commit)?;
        let superseded = self.superseded();
        let gone = superseded.iter().map(|entry| entry.hash);
        let gone: BTreeSet<RecordHash> = gone.chain(forgotten.iter().copied()).collect();
        let marked = self.mark_without(&commit, &gone)?;
        let foreseen = self.foresee(&commit, options, marked);
        self.index().drop_tentative();
        Ok(PruneReport { checkpoints_forgotten: superseded.len() as u64, ..foreseen? })
    }

    fn foresee(
        &self,
        commit: &CommitGuard<'_>,
        options: &PruneOptions,
        marked: Marked,
    ) -> Result<PruneReport, RepositoryError> {
        let due = self.due(options)?;
        let plan = self.plan(commit, options, marked)?;
        let tails = self.sparse_tails(options, marked.mark);
        let stored_before_bytes = self.stored_bytes();
        let in_packs: u64 = plan.iter().map(|candidate| candidate.unneeded_bytes).sum();
        let in_tails: u64 = tails.iter().map(|(_, unneeded_bytes)| unneeded_bytes).sum();
        let condemned_bytes: u64 = plan.iter().map(|candidate| candidate.file_bytes).sum();
        let mut report = PruneReport {
            stored_before_bytes,
            deleted_packs: due.len() as u64,
            deleted_bytes: due.iter().map(|due| due.file_bytes).sum(),
            condemned_packs: plan.len() as u64,
            condemned_bytes,
            moved_bytes: condemned_bytes - in_packs,
            ..PruneReport::default()
        };
        self.count_waiting(options, &mut report)?;
        let freed_bytes = report.deleted_bytes + in_packs + in_tails;
        report.stored_after_bytes = stored_before_bytes.saturating_sub(freed_bytes);
        Ok(report)
    }
}
