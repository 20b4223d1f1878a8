//! Verifying: opening what is stored with the key.
use holdall_protocol::ScrubDamage;
use crate::{Access, EngineError, Run};

/// How much to verify.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verify {
    /// Every block, and that every snapshot has all that it needs.
    All,
    /// The tree of every snapshot, and about so many of a hundred of its chunks.
    Percent {
        /// From 0 to 100.
        percent: u8,
        /// Chooses the chunks: random, so that nobody knows in advance which.
        seed: [u8; 32],
    },
}

/// How far a verification is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VerifyProgress {
    /// Blocks opened.
    pub blocks: u64,
    /// Bytes of blocks read.
    pub bytes: u64,
    /// Snapshots walked.
    pub snapshots: u64,
}

/// Something in a snapshot that could not be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedPath {
    /// The short id of a snapshot that has it; later ones may have it too.
    pub snapshot: String,
    /// The absolute path, any bytes; that of the first entry affected where a node is damaged.
    pub path: Vec<u8>,
    /// What is wrong.
    pub reason: String,
}

/// What a verification read and found.
#[derive(Debug, Clone, Default)]
pub struct VerifyReport {
    /// Blocks opened.
    pub blocks: u64,
    /// Objects whose id was computed anew.
    pub objects: u64,
    /// Bytes of blocks read.
    pub bytes: u64,
    /// Snapshots walked.
    pub snapshots: u64,
    /// Stored blocks that are damaged.
    pub damaged: Vec<ScrubDamage>,
    /// Paths that are damaged.
    pub damaged_paths: Vec<DamagedPath>,
}

/// Opens what is stored with the key and checks ids, and that every snapshot is whole.
///
/// # Errors
/// Only what keeps it from running; damage is in the report.
pub fn verify(
    access: &Access,
    how: Verify,
    run: &Run,
    progress: &mut dyn FnMut(VerifyProgress),
) -> Result<VerifyReport, EngineError> {
    let _ = (access, how, run, progress);
    unimplemented!()
}
