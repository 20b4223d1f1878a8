//! Copying snapshots from one repository into another, each with keys of its own.
//!
//! ```text
//! plan ── windows, in order ──────────────────────────> rebuild ─► storing
//!   │ └── orders ──> fetchers (fetch, open, name anew) ──┘ chunks of each window
//!   └ trees of the source, and of the copy before
//! ```
//!
//! Everything that an id covers has another id under other keys: chunks are named anew, contents
//! and trees are built anew. Nothing is cut anew, so that a large file which was copied shares its
//! chunks with other copies of it, and not with what is backed up there directly; files of one chunk
//! share with both. What the copy of a neighbouring snapshot has is taken from there, and only what
//! differs is fetched: in whole blocks, ahead of what is stored.
//!
//! A copy is this machine's, says what it was copied from, and is committed as a backup is: whole
//! or not at all. One that was cut short goes on at its last checkpoint.

mod fetch;
mod known;
mod meters;
mod plan;
mod rebuild;
mod run;
mod window;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use holdall_crypto::CopiedFrom;
use holdall_format::{ObjectId, RecordHash, SessionId, StoredRecord};
use holdall_meter::StageCounters;
use holdall_protocol::SessionPurpose;

use crate::blocks::{SharedNodeCache, open_node_cache};
use crate::error::is_damaged;
use crate::records::snapshots::snapshots;
use crate::{EngineError, Run, Snapshot, UnlockedRepository};
use known::Known;
use plan::Before;
pub(crate) use plan::NodesWhileRunning;

/// How to copy.
#[derive(Debug, Clone)]
pub struct CopyOptions {
    /// Requests with blocks at the same time, from 1 to 8.
    pub streams: usize,
    /// Whether every block is opened, and its ids compared, before it leaves.
    pub self_check: bool,
    /// How often a checkpoint is written.
    pub checkpoint_every: Duration,
    /// Threads for sealing: the computer's cores.
    pub cores: usize,
}

impl Default for CopyOptions {
    fn default() -> Self {
        let checkpoint_every = Duration::from_secs(300);
        Self { streams: 4, self_check: true, checkpoint_every, cores: 2 }
    }
}

/// What became of a snapshot.
#[derive(Debug, Clone)]
pub enum Copied {
    /// It is there already, as this snapshot.
    Before(RecordHash),
    /// It was copied now.
    Now(CopySummary),
}

/// What a copy did.
#[derive(Debug, Clone)]
pub struct CopySummary {
    /// The new snapshot.
    pub snapshot_id: RecordHash,
    /// The record as the destination stored it, with its receipt: what to remember.
    pub stored_record: Bytes,
    /// All items.
    pub items: u64,
    /// Bytes of all files, with holes.
    pub bytes: u64,
    /// Plain bytes of objects that the destination did not have.
    pub data_added: u64,
    /// The same, sealed.
    pub data_stored: u64,
    /// Bytes sent to the destination, with everything around them.
    pub bytes_sent: u64,
    /// Bytes received, from both.
    pub bytes_received: u64,
    /// How long it took.
    pub seconds: f64,
    /// The stages' counters, in the order of the pipeline.
    pub stages: Vec<StageCounters>,
}

/// Copies snapshots, one after the other.
pub struct Copier<'a> {
    source: &'a UnlockedRepository,
    destination: &'a UnlockedRepository,
    options: CopyOptions,
    /// Snapshots of the source.
    listed: &'a [Snapshot],
    /// What the destination has.
    there: Vec<There>,
    source_session: SessionId,
    source_cache: SharedNodeCache,
    cache: SharedNodeCache,
    known: Known,
}

/// A record of the destination.
struct There {
    /// What its state was first committed as, which may be itself: a snapshot that comes back is not
    /// copied onto itself, however many repositories it went through.
    origin: RecordHash,
    /// What it was copied from itself, which has the same tree for certain if this machine copied it;
    /// of what is no copy, itself.
    direct: RecordHash,
    id: RecordHash,
    root: ObjectId,
    /// Whether this machine made it.
    is_own: bool,
    is_checkpoint: bool,
}

impl<'a> Copier<'a> {
    /// Finds out what the destination has. `listed` are the snapshots of the source, oldest first.
    ///
    /// # Errors
    /// [`EngineError::Repository`], [`EngineError::Damaged`].
    pub fn new(
        source: &'a UnlockedRepository,
        listed: &'a [Snapshot],
        destination: &'a UnlockedRepository,
        options: CopyOptions,
    ) -> Result<Self, EngineError> {
        let there = |record: &Snapshot| There {
            origin: record.origin(),
            direct: record.secret.copied_from.map_or(record.id, |from| from.direct()),
            id: record.id,
            root: record.root,
            is_own: record.machine == destination.machine,
            is_checkpoint: record.checkpoint,
        };
        Ok(Self {
            source,
            destination,
            options,
            listed,
            there: snapshots(destination)?.all().into_iter().map(there).collect(),
            source_session: source.repository.open_session(&SessionPurpose::Read)?.session,
            source_cache: open_node_cache(source),
            cache: open_node_cache(destination),
            known: Known::new(),
        })
    }

    /// Copies a snapshot, unless the destination has it: as its origin, or as any copy of that.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] if something that it needs cannot be had from the source: others
    /// can still be copied; [`EngineError::Repository`], [`EngineError::Interrupted`]. No snapshot
    /// was committed then.
    pub fn copy(&mut self, snapshot: &Snapshot, run: &Arc<Run>) -> Result<Copied, EngineError> {
        let done = |there: &&There| there.origin == snapshot.origin() && !there.is_checkpoint;
        if let Some(done) = self.there.iter().find(done) {
            return Ok(Copied::Before(done.id));
        }
        let (before, parents) = self.before(snapshot);
        let mut copied = self.measured(snapshot, before, parents, run);
        let may_go_whole =
            |error: &EngineError| is_damaged(error) || matches!(error, EngineError::Lost { .. });
        if copied.as_ref().is_err_and(may_go_whole) && before != Before::default() {
            // It may be another snapshot, or its copy, that is damaged, or lost some of what it had.
            copied = self.measured(snapshot, Before::default(), Vec::new(), run);
        }
        let summary = copied?;
        self.there.push(There {
            origin: snapshot.origin(),
            direct: snapshot.id,
            id: summary.snapshot_id,
            root: StoredRecord::decode(&summary.stored_record)?.record.head.root,
            is_own: true,
            is_checkpoint: false,
        });
        Ok(Copied::Now(summary))
    }

    /// What this machine has there that is of use for a snapshot, and the records to name.
    fn before(&self, snapshot: &Snapshot) -> (Before, Vec<RecordHash>) {
        let own = || self.there.iter().filter(|there| there.is_own);
        let checkpoint = own().rfind(|there| there.is_checkpoint && there.direct == snapshot.id);
        let nearest = own()
            .filter(|there| !there.is_checkpoint)
            .filter_map(|there| {
                let from = self.listed.iter().find(|listed| listed.id == there.direct)?;
                (from.series == snapshot.series).then_some((there, from))
            })
            .min_by_key(|(_, from)| from.log_position.abs_diff(snapshot.log_position));
        let parents = checkpoint.into_iter().chain(nearest.map(|(copy, _)| copy));
        let before = Before {
            copy: nearest.map(|(copy, from)| (from.root, copy.root)),
            checkpoint: checkpoint.map(|copy| copy.root),
        };
        (before, parents.map(|copy| copy.id).collect())
    }

    fn measured(
        &self,
        snapshot: &Snapshot,
        before: Before,
        parents: Vec<RecordHash>,
        run: &Arc<Run>,
    ) -> Result<CopySummary, EngineError> {
        let begun = Instant::now();
        let traffic = || {
            let [from, to] = [self.source, self.destination].map(|at| at.repository.traffic());
            (to.sent_bytes, from.received_bytes + to.received_bytes)
        };
        let (sent_before, received_before) = traffic();
        let summary = self.attempt(snapshot, before, parents, run)?;
        let (sent, received) = traffic();
        Ok(CopySummary {
            bytes_sent: sent.saturating_sub(sent_before),
            bytes_received: received.saturating_sub(received_before),
            seconds: begun.elapsed().as_secs_f64(),
            ..summary
        })
    }

    /// What a copy says that it was copied from: of a copy, the original too.
    fn copied_from(snapshot: &Snapshot) -> CopiedFrom {
        CopiedFrom {
            record: snapshot.origin(),
            received_ns: snapshot.taken_ns(),
            through: snapshot.is_copy().then_some(snapshot.id),
        }
    }
}

impl Drop for Copier<'_> {
    fn drop(&mut self) {
        // What was read is read: a session that is not closed lapses.
        let _ = self.source.repository.close_session(&self.source_session);
    }
}

#[cfg(test)]
mod tests;
