//! What a block holds.

/// What a block holds. Nodes and chunks are never mixed, so that listing and mounting fetch no
/// content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// Nodes of trees and of chunk lists; the table has their references.
    Nodes,
    /// Chunks of content.
    Chunks,
    /// The sealed half of a record; the table is empty.
    Record,
}

impl BlockKind {
    /// The byte that stands for this kind.
    pub fn code(self) -> u8 {
        match self {
            Self::Nodes => 1,
            Self::Chunks => 2,
            Self::Record => 3,
        }
    }

    /// The kind that a byte stands for.
    pub fn from_code(code: u8) -> Option<Self> {
        [Self::Nodes, Self::Chunks, Self::Record].into_iter().find(|kind| kind.code() == code)
    }
}
