//! What can be wrong with a tree that is read, and with one that is built.

use holdall_format::{FormatError, ObjectId};

/// Why a tree could not be read. `E` is the error of the place that nodes come from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError<E> {
    /// A node could not be had; reading can be tried again from the same place.
    #[error(transparent)]
    Source(E),
    /// A node's bytes are not those of a node. Reading again gives the same answer.
    #[error("node {node} cannot be read")]
    Node {
        /// The node.
        node: ObjectId,
        /// What is wrong with it.
        #[source]
        error: FormatError,
    },
    /// A node can be read, but does not fit where it was found. Reading again gives the same
    /// answer.
    #[error("node {node} does not belong here: {reason}")]
    Misplaced {
        /// The node.
        node: ObjectId,
        /// Why it does not fit.
        reason: &'static str,
    },
}

/// Why a tree or a list could not be built. `E` is the error of the place that nodes go to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError<E> {
    /// A node could not be handed over; what was built is lost.
    #[error(transparent)]
    Sink(E),
    /// An entry's path is not above that of the entry before. It was not added; others can be.
    #[error("entries were added out of order")]
    OutOfOrder,
    /// A whole leaf was added where none begins. It was not added; others can be.
    #[error("a leaf was added where none begins")]
    NoBoundary,
    /// The format has no place for this entry or chunk. It was not added; others can be.
    #[error("the entry cannot be stored: {reason}")]
    InvalidEntry {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The tree would get more than [`crate::TREE_MAX_LEVEL`] levels.
    #[error("the tree has too many levels")]
    TooDeep,
}
