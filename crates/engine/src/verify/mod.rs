//! Verifying: opening what is stored with the key, and that every snapshot has all that it needs.
//!
//! A scrub shows that stored bytes are those that were stored; only this shows that they are the
//! right ones. Everything: each block is opened once and every id in it computed anew; then the
//! trees are walked, and each chunk that a file names must have been among them. A part: the trees
//! are walked and a random sample of their chunks is fetched as a restore would. Snapshots share
//! most of their nodes, and only what differs from the snapshot before is walked.

mod blocks;
mod trees;

use holdall_protocol::{ScrubDamage, SessionPurpose};

pub(crate) use blocks::{GoodIds, check, open_all};
pub(crate) use trees::{Check, stored_nodes, walk_all};

use crate::{EngineError, Run, Snapshot, UnlockedRepository};

/// How much to verify.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verify {
    /// Every block, and that every snapshot has all that it needs.
    All,
    /// Every snapshot's tree, and about so many of a hundred of its chunks.
    Percent {
        /// From 0 to 100.
        percent: u8,
        /// Chooses the chunks: random bytes, so that nobody knows in advance which.
        seed: [u8; 32],
    },
}

/// How far a verification is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VerifyProgress {
    /// Blocks opened.
    pub blocks: u64,
    /// Objects checked.
    pub objects: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Snapshots walked.
    pub snapshots: u64,
}

/// Something in a snapshot that cannot be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedPath {
    /// The id of a snapshot that has it; later ones may have it too.
    pub snapshot: String,
    /// The absolute path, any bytes; where part of the tree is damaged, the last path before it.
    pub path: Vec<u8>,
    /// What is wrong.
    pub reason: String,
}

/// What a verification read and found.
#[derive(Debug, Clone, Default)]
pub struct VerifyReport {
    /// Blocks opened; counted only when everything is verified.
    pub blocks: u64,
    /// Objects whose id was computed anew, tree nodes met while walking not counted.
    pub objects: u64,
    /// Bytes read: of blocks, or of sampled chunks.
    pub bytes: u64,
    /// Snapshots walked.
    pub snapshots: u64,
    /// Stored blocks that are damaged.
    pub damaged: Vec<ScrubDamage>,
    /// Paths that cannot be restored, the first thousand.
    pub damaged_paths: Vec<DamagedPath>,
    /// How many those are.
    pub damaged_path_count: u64,
}

/// Damaged paths beyond this many are counted, not kept.
const PATHS_KEPT: usize = 1000;

impl VerifyReport {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.damaged.is_empty() && self.damaged_path_count == 0
    }

    /// How many paths cannot be restored and were not kept.
    pub fn unnamed_paths(&self) -> u64 {
        self.damaged_path_count.saturating_sub(self.damaged_paths.len() as u64)
    }

    fn damaged_path(&mut self, path: DamagedPath) {
        self.damaged_path_count += 1;
        if self.damaged_paths.len() < PATHS_KEPT {
            self.damaged_paths.push(path);
        }
    }

    fn progress(&self) -> VerifyProgress {
        let Self { blocks, objects, bytes, snapshots, .. } = *self;
        VerifyProgress { blocks, objects, bytes, snapshots }
    }
}

/// Opens what is stored with the key and checks ids, and that each of these snapshots, all that
/// [`snapshots`](crate::snapshots) listed, is whole. They are not listed anew: a repository that answers that
/// differently from one time to the next would have others checked than those that were looked at.
///
/// # Errors
/// Only what keeps it from running at all, [`EngineError::Interrupted`] among it; damage is in the
/// report.
pub fn verify(
    access: &UnlockedRepository,
    snapshots: &[Snapshot],
    how: Verify,
    run: &Run,
    progress: &mut dyn FnMut(VerifyProgress),
) -> Result<VerifyReport, EngineError> {
    let session = access.repository.open_session(&SessionPurpose::Read)?.session;
    let verified = match how {
        Verify::All => blocks::open_all(access, session, run, progress).and_then(|opened| {
            let blocks::Opened { report, good } = opened;
            let check = trees::Check::AmongThese(&good);
            trees::walk_all(access, session, snapshots, check, report, run, progress)
        }),
        Verify::Percent { percent, seed } => {
            let check = trees::Check::Sample { percent, key: seed };
            let report = VerifyReport::default();
            trees::walk_all(access, session, snapshots, check, report, run, progress)
        }
    };
    // What was read is read: a session that is not closed lapses.
    let _ = access.repository.close_session(&session);
    verified
}

#[cfg(test)]
mod tests;
