//! Repairing a repository from a second one that holds the same data.
//!
//! ```text
//! open every block ─► what no snapshot can do without and no good block has
//!   the same keys:  fetch it by its id
//!   other keys:     walk the snapshot and its copy side by side, build what is lost anew
//! ids come out ─► put again;   they do not ─► left, and told
//! ```
//!
//! An id is a keyed hash of plain content, so that of a repository with other keys nothing can be asked
//! by id. But the same entries give the same tree, and the same bytes the same chunk: what the copy of a
//! snapshot has, named and built with this repository's keys, gets the ids that are missed, or it is
//! something else. The second repository is trusted for nothing: what is put has an id that this
//! repository's snapshots ask for. Nothing is removed or replaced, and no record is written.

mod by_id;
mod by_path;
mod outlet;
mod reach;
mod repaired;

use std::collections::{BTreeMap, HashSet};

use holdall_format::{ObjectId, RecordHash, SessionId};
use holdall_meter::counted;
use holdall_protocol::SessionPurpose;

use crate::records::snapshots::snapshots;
use crate::verify::{DamagedPath, VerifyProgress, open_all};
use crate::{EngineError, Run, Snapshot, UnlockedRepository};
use reach::Reach;
use repaired::Repaired;

/// What is still lost beyond this many paths is counted for each snapshot, not named.
const PATHS_KEPT: usize = 1000;

/// What a second repository gave.
#[derive(Debug, Clone, Default)]
pub struct CopyRepairReport {
    /// Snapshots of which something was stored again, or could be.
    pub repaired: Vec<RepairedSnapshot>,
    /// What is still lost, and why; the first thousand of each snapshot.
    pub left: Vec<DamagedPath>,
}

/// A snapshot of which something was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairedSnapshot {
    /// Its id.
    pub snapshot: String,
    /// Nodes and chunks that were stored again.
    pub objects: u64,
    /// Their plain bytes.
    pub bytes: u64,
}

/// Finds what snapshots need and the repository no longer has, and stores it again as far as `second`
/// has it; with `dry_run`, only finds out what that is. Of a directory, everything that is stored is
/// read and opened.
///
/// # Errors
/// What keeps it from running; [`EngineError::Interrupted`]. What was stored until then stays, and
/// calling again goes on from there.
pub fn repair_from_copy(
    access: &UnlockedRepository,
    second: &UnlockedRepository,
    dry_run: bool,
    run: &Run,
    progress: &mut dyn FnMut(VerifyProgress),
) -> Result<CopyRepairReport, EngineError> {
    let purpose = match dry_run {
        true => SessionPurpose::Read,
        false => SessionPurpose::Backup { parents: Vec::new() },
    };
    let session = access.repository.open_session(&purpose)?.session;
    let repaired = find(access, session, run, progress).and_then(|(reach, damaged)| {
        if damaged.is_empty() {
            return Ok(CopyRepairReport::default());
        }
        second.reading(|second_session| {
            let theirs = snapshots(second)?.snapshots;
            let (report, notes) = Default::default();
            Repairing {
                access,
                session,
                second,
                second_session,
                theirs,
                dry_run,
                run,
                reach,
                notes,
                report,
            }
            .run(&damaged)
        })
    });
    // What was put is reached by records, so it stays; a session that is not closed lapses.
    let _ = access.repository.close_session(&session);
    repaired
}

/// What is still there, and the snapshots that need more.
fn find(
    access: &UnlockedRepository,
    session: SessionId,
    run: &Run,
    progress: &mut dyn FnMut(VerifyProgress),
) -> Result<(Reach, Vec<Snapshot>), EngineError> {
    let good = open_all(access, session, run, progress)?.good;
    let mut reach = Reach::new(access, session, good);
    let mut damaged = Vec::new();
    for snapshot in snapshots(access)?.snapshots {
        if !reach.lost_below(&snapshot.root, run)?.is_empty() {
            damaged.push(snapshot);
        }
    }
    Ok((reach, damaged))
}

/// The work on damaged snapshots.
struct Repairing<'a> {
    access: &'a UnlockedRepository,
    session: SessionId,
    second: &'a UnlockedRepository,
    second_session: SessionId,
    /// The second repository's snapshots.
    theirs: Vec<Snapshot>,
    dry_run: bool,
    run: &'a Run,
    reach: Reach,
    /// Why something could not be had, for each snapshot.
    notes: BTreeMap<RecordHash, Vec<DamagedPath>>,
    report: CopyRepairReport,
}

impl Repairing<'_> {
    fn run(mut self, damaged: &[Snapshot]) -> Result<CopyRepairReport, EngineError> {
        damaged.iter().try_for_each(|snapshot| self.repair_from_copy(snapshot))?;
        // Only now, since one snapshot may have got what another lacks.
        damaged.iter().try_for_each(|snapshot| self.look_again(snapshot))?;
        Ok(self.report)
    }

    fn repair_from_copy(&mut self, snapshot: &Snapshot) -> Result<(), EngineError> {
        let id = snapshot.id.to_string();
        let mut sum = RepairedSnapshot { snapshot: id, objects: 0, bytes: 0 };
        loop {
            // What is below something that was lost shows only when that is there again.
            let lost = self.reach.lost_below(&snapshot.root, self.run)?;
            let repaired =
                if lost.is_empty() { Repaired::default() } else { self.get(snapshot, lost)? };
            if repaired.objects == 0 {
                break;
            }
            sum.objects += repaired.objects;
            sum.bytes += repaired.bytes;
            self.reach.add(repaired);
        }
        if sum.objects > 0 {
            self.report.repaired.push(sum);
        }
        Ok(())
    }

    /// Gets what it can of what is lost, and puts it again.
    fn get(
        &mut self,
        snapshot: &Snapshot,
        lost: HashSet<ObjectId>,
    ) -> Result<Repaired, EngineError> {
        self.notes.remove(&snapshot.id);
        if self.access.config.repository == self.second.config.repository {
            return self.fetch_by_id(snapshot, lost);
        }
        let is_copy = |theirs: &&Snapshot| theirs.origin() == snapshot.origin();
        let copies: Vec<_> = self.theirs.iter().filter(is_copy).cloned().collect();
        for copy in &copies {
            let repaired = self.rebuild_by_path(snapshot, copy, &lost)?;
            if repaired.objects > 0 {
                return Ok(repaired);
            }
        }
        if copies.is_empty() {
            self.note(snapshot, b"/", "the second repository has no copy of this snapshot");
        }
        Ok(Repaired::default())
    }

    /// Tells what a snapshot still lacks.
    fn look_again(&mut self, snapshot: &Snapshot) -> Result<(), EngineError> {
        let lost = self.reach.lost_below(&snapshot.root, self.run)?.len();
        if lost == 0 {
            return Ok(());
        }
        if !self.notes.contains_key(&snapshot.id) {
            let reason = format!(
                "{} of it did not come out of the second repository",
                counted(lost as u64, "object")
            );
            self.note(snapshot, b"/", &reason);
        }
        self.report.left.extend(self.notes.remove(&snapshot.id).unwrap_or_default());
        Ok(())
    }

    fn note(&mut self, snapshot: &Snapshot, path: &[u8], reason: &str) {
        let notes = self.notes.entry(snapshot.id).or_default();
        if notes.len() < PATHS_KEPT {
            let (path, reason) = (path.to_vec(), reason.to_owned());
            notes.push(DamagedPath { snapshot: snapshot.id.to_string(), path, reason });
        }
    }
}

#[cfg(test)]
mod tests;
