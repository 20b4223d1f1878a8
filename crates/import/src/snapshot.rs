//! A snapshot of restic, as far as its file says it.

use holdall_engine::ForeignSnapshot;

/// A snapshot of restic.
#[derive(Debug, Clone)]
pub struct ResticSnapshot {
    /// What is imported of it.
    pub foreign: ForeignSnapshot,
    /// The id that it had before restic changed its tags, rewrote it or copied it from another repository.
    pub original: Option<[u8; 32]>,
    /// Its date as restic has it, if no snapshot here can have that: `foreign` has the nearest one.
    pub date: Option<String>,
    /// The id of its tree.
    #[cfg(feature = "restic")]
    pub(crate) tree: [u8; 32],
}

/// A snapshot of restic whose file cannot be read.
#[derive(Debug, Clone)]
pub struct UnreadSnapshot {
    /// Its id as restic writes it: 64 digits.
    pub id: String,
    /// Why it cannot be read.
    pub reason: String,
    /// What kind of reason that is.
    pub kind: UnreadKind,
}

/// What keeps the file of a snapshot from being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnreadKind {
    /// It is damaged.
    Damaged,
    /// Only another user may read it.
    Forbidden,
    /// It is as it was written, and says something that this does not understand.
    NotUnderstood,
}

impl ResticSnapshot {
    /// Its id as restic writes it: 64 digits.
    pub fn hex_id(&self) -> String {
        self.foreign.id.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
