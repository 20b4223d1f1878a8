//! Importing snapshots of another program, each as a snapshot of its own that keeps its date.
//!
//! ```text
//! the other program's tree ─► entries (plan) ─► read (read, chunk, hash) ─► storing
//!                               │ tree of the snapshot that was imported before
//! ```
//!
//! Whoever can read the other repository walks its trees in the order of ours and hands each entry over with a reader for
//! its content, which is cut as that of a backup is: what was imported shares chunks with what is backed up directly. What
//! the walk says is the same as in an earlier snapshot is taken from that one's import, and not read.
//!
//! What was imported says so as a copy does, with the other snapshot's id and date, so that rules keep it by that date and
//! another import knows it. What cannot be read there is told and left out, as in a backup.

mod entries;
mod foreign;
mod read;
mod run;

use std::sync::Arc;
use std::time::Instant;

use holdall_crypto::CopiedFrom;
use holdall_format::{ObjectId, RecordHash, StoredRecord};

use crate::blocks::{SharedNodeCache, open_node_cache};
use crate::error::is_damaged;
use crate::records::snapshots::snapshots;
use crate::{Copied, CopyOptions, CopySummary, EngineError, Run, UnlockedRepository};
pub use entries::{Entries, ForeignTree};
pub use foreign::{ForeignSnapshot, Found, FoundContent};

/// Imports snapshots, one after the other.
pub struct Importer<'a> {
    destination: &'a UnlockedRepository,
    options: CopyOptions,
    there: Vec<There>,
    cache: SharedNodeCache,
}

/// A record of the destination that was imported or copied.
struct There {
    /// The id of what it was imported from.
    origin: [u8; 32],
    id: RecordHash,
    root: ObjectId,
    /// Whether this machine made it.
    is_own: bool,
    is_checkpoint: bool,
    /// What of the other snapshot is not in it.
    unreadable: u64,
}

/// The snapshot as which another was imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Imported {
    /// Its id.
    pub id: RecordHash,
    /// How many items of the other one are not in it as they should be, since they could not be read.
    pub unreadable: u64,
}

impl<'a> Importer<'a> {
    /// Finds out what the destination has.
    ///
    /// # Errors
    /// [`EngineError::Repository`], [`EngineError::Damaged`].
    pub fn new(
        destination: &'a UnlockedRepository,
        options: CopyOptions,
    ) -> Result<Self, EngineError> {
        let listed = snapshots(destination)?;
        let there = |record: &crate::Snapshot| {
            Some(There {
                origin: *record.secret.copied_from?.record.as_bytes(),
                id: record.id,
                root: record.root,
                is_own: record.machine == destination.machine,
                is_checkpoint: record.checkpoint,
                unreadable: record.secret.unreadable,
            })
        };
        let there = listed.all().into_iter().filter_map(there).collect();
        Ok(Self { destination, options, there, cache: open_node_cache(destination) })
    }

    /// The snapshot as which the other one of that id was imported.
    pub fn imported(&self, id: &[u8; 32]) -> Option<Imported> {
        let there = self.there.iter().find(|there| there.origin == *id && !there.is_checkpoint)?;
        Some(Imported { id: there.id, unreadable: there.unreadable })
    }

    /// Whether the one of that id was imported by this machine, with all that it has: the next can say what is as in it.
    pub fn is_base(&self, id: &[u8; 32]) -> bool {
        self.base(id).is_some()
    }

    fn base(&self, id: &[u8; 32]) -> Option<&There> {
        let is_base = |there: &&There| {
            there.origin == *id && there.is_own && there.unreadable == 0 && !there.is_checkpoint
        };
        self.there.iter().find(is_base)
    }

    /// Imports a snapshot, unless the destination has it. `tree` makes what walks its tree. That may say what is as in the
    /// snapshot of the id `base`, if it is told that this can be used; else everything has to be read.
    ///
    /// # Errors
    /// Those of `tree`, and of its walk; [`EngineError::Repository`], [`EngineError::Interrupted`]. No snapshot was
    /// committed then.
    pub fn import<T: ForeignTree>(
        &mut self,
        snapshot: &ForeignSnapshot,
        base: Option<[u8; 32]>,
        tree: impl Fn(bool) -> T,
        run: &Arc<Run>,
    ) -> Result<Copied, EngineError> {
        if let Some(done) = self.imported(&snapshot.id) {
            return Ok(Copied::Before(done.id));
        }
        let before = base.and_then(|id| self.base(&id)).map(|there| (there.id, there.root));
        let mut imported = self.measured(snapshot, before, tree(before.is_some()), run);
        let may_go_whole =
            |error: &EngineError| is_damaged(error) || matches!(error, EngineError::Lost { .. });
        if before.is_some() && imported.as_ref().is_err_and(may_go_whole) {
            // It may be the earlier import that is damaged.
            run.begin_again();
            imported = self.measured(snapshot, None, tree(false), run);
        }
        let summary = imported?;
        self.there.push(There {
            origin: snapshot.id,
            id: summary.snapshot_id,
            root: StoredRecord::decode(&summary.stored_record)?.record.head.root,
            is_own: true,
            is_checkpoint: false,
            unreadable: run.problem_count(),
        });
        Ok(Copied::Now(summary))
    }

    fn measured(
        &self,
        snapshot: &ForeignSnapshot,
        before: Option<(RecordHash, ObjectId)>,
        tree: impl ForeignTree,
        run: &Arc<Run>,
    ) -> Result<CopySummary, EngineError> {
        let begun = Instant::now();
        self.destination.take_traffic();
        // A checkpoint of this import that was cut short keeps what it has stored.
        let is_cut =
            |there: &&There| there.is_own && there.is_checkpoint && there.origin == snapshot.id;
        let cut = self.there.iter().rfind(is_cut).map(|there| there.id);
        let parents = cut.into_iter().chain(before.map(|(id, _)| id)).collect();
        let summary = self.attempt(snapshot, before.map(|(_, root)| root), parents, tree, run)?;
        let traffic = self.destination.take_traffic();
        Ok(CopySummary {
            bytes_sent: traffic.sent_bytes,
            bytes_received: traffic.received_bytes,
            seconds: begun.elapsed().as_secs_f64(),
            ..summary
        })
    }

    fn copied_from(snapshot: &ForeignSnapshot) -> CopiedFrom {
        CopiedFrom {
            record: RecordHash::from_bytes(snapshot.id),
            received_ns: snapshot.taken_ns,
            through: None,
        }
    }
}

#[cfg(test)]
mod tests;
