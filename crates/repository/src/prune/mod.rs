//! Prune: what no snapshot reaches any more is given back.
//!
//! ```text
//! mark      everything that records and live sessions reach is closed, and nothing else
//! delete    packs that were condemned long enough ago, of which the mark needed nothing
//! plan      which packs hold little or nothing that is closed
//! condemn   each: blocks that are needed are copied out, then nothing in the pack counts as there
//! ```
//!
//! Nobody has keys here: what is needed is known from the references in clear. The rules that make it
//! safe beside everything else:
//!
//! - What is closed changes only under the commit lock, and a closed node's references are closed. So
//!   the mark, and for each pack the last look and the condemning, exclude commits; puts, questions
//!   and reading go on.
//! - Objects that came since the oldest live session began are needed, whoever put them; so are the
//!   parents that sessions name. A pack of which a live session was told that it holds something is
//!   left alone. So are blocks that are superseded and held.
//! - A condemned pack is as good as gone from the moment that its mark is durable. Deleting it later
//!   takes nothing from anybody. Only packs go that the mark left out: what is condemned is known once,
//!   when the repository is opened, and not looked up again.
//! - Where anything is missing or cannot be read, nothing is condemned or deleted: what looks dead may
//!   be what a repair needs.

mod condemning;
mod foreseeing;
mod marking;
pub(crate) mod move_blocks;
mod plan;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use holdall_protocol::{PruneReport, RepositoryError};

use crate::state_files::condemned::{self, Condemned};
use crate::store::{CommitGuard, Store};
use marking::Marked;
use plan::Candidate;

/// How to prune.
#[derive(Debug, Clone, Copy)]
pub struct PruneOptions {
    /// How long packs are kept after they were condemned.
    pub grace: Duration,
    /// A pack goes once one part in so many of it is not needed: what is needed has to be copied.
    pub sparse_part: u64,
}

impl PruneOptions {
    fn grace_ns(&self) -> i64 {
        i64::try_from(self.grace.as_nanos()).unwrap_or(i64::MAX)
    }

    /// So much of something of that length has to be unneeded for it to go.
    fn sparse_bytes(&self, of_bytes: u64) -> u64 {
        of_bytes.div_ceil(self.sparse_part.max(1)).max(1)
    }
}

impl Store {
    /// Deletes what nothing needs.
    ///
    /// # Errors
    /// [`RepositoryError::Damaged`] if something is missing or cannot be read, and nothing is
    /// deleted then; [`RepositoryError::NoRoom`] if there is none for copies of what packs have that is
    /// needed, or for tombstones of checkpoints, and none is made; [`RepositoryError::Interrupted`] once
    /// `should_stop` is set: what was done until then is done.
    pub fn prune(
        &self,
        options: &PruneOptions,
        should_stop: &AtomicBool,
    ) -> Result<PruneReport, RepositoryError> {
        self.appender()?;
        let mut report =
            PruneReport { stored_before_bytes: self.stored_bytes(), ..PruneReport::default() };
        let (plan, unburied) = {
            let commit = self.lock_commit();
            let unburied = self.forget_superseded_if_room(&commit, &mut report)?;
            self.repair_index(&commit)?;
            let marked = self.mark_and_note(&commit)?;
            self.delete_due(&commit, options, &mut report)?;
            let now = Condemned { since_ns: self.now_ns(), log_position: self.log().next() };
            // A mark that cannot be written anew keeps its pack, and nothing else.
            let _ = condemned::renew_unreadable(self.layout(), &now);
            self.forget_spent_marks(&commit)?;
            self.close_sparse_tails(options);
            let plan = self.plan(&commit, options, marked)?;
            if !plan.is_empty() {
                self.begin_letting_go(&commit)?;
            }
            (plan, unburied)
        };
        let blocked = self.condemn_all(&plan, options, &mut report, should_stop)?;
        if options.grace.is_zero() && report.condemned_packs > 0 {
            let commit = self.lock_commit();
            // Without a grace nothing else would find out that something needed was left behind.
            self.mark_and_note(&commit)?;
            self.delete_due(&commit, options, &mut report)?;
        }
        self.count_waiting(options, &mut report)?;
        report.stored_after_bytes = self.stored_bytes();
        self.tend_index();
        match blocked.or(unburied.map(|error| (error, 0))) {
            // Else what went, or goes when its grace is over, makes the room.
            Some((error, lacking)) if report.deleted_bytes + report.waiting_bytes <= lacking => {
                Err(error)
            }
            _ => Ok(report),
        }
    }

    /// Forgets checkpoints that nothing needs; the error if there is no room for their tombstones. They go the
    /// next time then, and what only they need with them.
    fn forget_superseded_if_room(
        &self,
        commit: &CommitGuard<'_>,
        report: &mut PruneReport,
    ) -> Result<Option<RepositoryError>, RepositoryError> {
        match self.forget_superseded(commit) {
            Err(error @ RepositoryError::NoRoom { .. }) => return Ok(Some(error)),
            forgotten => report.checkpoints_forgotten = forgotten?,
        }
        Ok(None)
    }

    /// Condemns what was planned, one after the other; the error and how many bytes were lacking if there is
    /// no room for the copies of one.
    fn condemn_all(
        &self,
        plan: &[Candidate],
        options: &PruneOptions,
        report: &mut PruneReport,
        should_stop: &AtomicBool,
    ) -> Result<Option<(RepositoryError, u64)>, RepositoryError> {
        for candidate in plan {
            if should_stop.load(Ordering::Acquire) {
                return Err(RepositoryError::Interrupted);
            }
            match self.condemn(candidate, options, report) {
                Err(error @ RepositoryError::NoRoom { .. }) => {
                    return Ok(Some((error, candidate.file_bytes - candidate.unneeded_bytes)));
                }
                done => done?,
            }
        }
        Ok(None)
    }

    /// Checks that everything is there that snapshots need, as a prune does before it lets anything go: while
    /// one is damaged, those before it may be all that is left.
    ///
    /// # Errors
    /// [`RepositoryError::Damaged`] if something is missing or cannot be read.
    pub fn check_needed(&self) -> Result<(), RepositoryError> {
        self.mark_and_note(&self.lock_commit()).map(drop)
    }

    /// Marks, and has what is missing be told with what is damaged.
    fn mark_and_note(&self, commit: &CommitGuard<'_>) -> Result<Marked, RepositoryError> {
        let marked = self.mark_needed(commit);
        self.note_marked(&marked);
        marked
    }

    /// Has no index from before be believed about what is closed: one of its closed nodes may refer to
    /// what is let go from now on.
    fn begin_letting_go(&self, _commit: &CommitGuard<'_>) -> Result<(), RepositoryError> {
        self.appender()?.invalidate_saved_indexes()?;
        self.save_index_if_room()
    }

    /// Saves the index. Where there is no room for that, the one before stays: it is not believed any more about
    /// what is closed, and what it has that is gone is found out at the next start.
    fn save_index_if_room(&self) -> Result<(), RepositoryError> {
        match self.index().save() {
            Err(RepositoryError::NoRoom { .. }) => Ok(()),
            saved => saved,
        }
    }
}
