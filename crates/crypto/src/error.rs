//! Why something was not sealed, opened or accepted.

use holdall_format::{BlockKind, FormatError, ObjectId, RepositoryId, WrappingKind};

/// Why a step with keys failed. No variant holds key material or content, so every message may be
/// logged. Trying again with the same input gives the same answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CryptoError {
    /// Bytes are not what the format allows, or a signature does not hold.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A block belongs to another repository.
    #[error("the block belongs to repository {found}, not to {expected}")]
    WrongRepository {
        /// The repository that the block names.
        found: RepositoryId,
        /// The repository that was to be read.
        expected: RepositoryId,
    },
    /// A block holds something else than was asked for.
    #[error("the block holds {found:?}, not {expected:?}")]
    WrongKind {
        /// What the block says that it holds.
        found: BlockKind,
        /// What was to be read.
        expected: BlockKind,
    },
    /// A block was not sealed with this repository's key, or was changed since.
    #[error("the block was changed, or was not sealed with this repository's key")]
    NotAuthentic,
    /// A block was sealed in a key epoch that the key ring does not have.
    #[error(
        "the block was changed, or sealed in key epoch {epoch}, which began after the keys were read"
    )]
    UnknownEpoch {
        /// The epoch that the block names.
        epoch: u32,
    },
    /// A record's sealed half was made for another record: somebody without keys put the two together.
    #[error("its sealed half is that of another record: it was forged by somebody without keys")]
    OtherHead,
    /// A block opened to an object that does not have the id that its table gives it.
    #[error("the block's content for {id} does not have that id")]
    WrongId {
        /// The id in the table.
        id: ObjectId,
    },
    /// zstd failed.
    #[error("compression failed: {reason}")]
    Compression {
        /// What zstd said.
        reason: String,
    },
    /// The passphrase, recovery secret or key opens none of the wrappings, or a passphrase does not
    /// unlock a key.
    #[error("wrong passphrase or key")]
    WrongKey,
    /// Nothing in the set can be opened in this way.
    #[error("the repository has no key wrapped for {}", wrapping_kind(*.kind))]
    NoWrapping {
        /// What was to open it.
        kind: WrappingKind,
    },
    /// A wrapping cannot be read, or asks for more work than is allowed.
    #[error("the wrapped key {label:?} cannot be read: {reason}")]
    BadWrapping {
        /// The wrapping's label.
        label: String,
        /// Why it was refused.
        reason: String,
    },
    /// The wrapped secret opened, but it is not this set's: somebody put another set in its place.
    #[error("the wrapped keys were swapped: the secret in them belongs to another repository")]
    SwappedWrappings,
    /// The wrapped keys have epochs that a key ring lacks: the keys were rotated since it was kept.
    #[error("the repository's keys were rotated since this computer kept them")]
    Rotated,
    /// The wrapped keys lack an epoch that a key ring has: they were set back to what they were
    /// before the keys were rotated.
    #[error("the wrapped keys were set back to what they were before a rotation of the keys")]
    SetBack,
    /// A configuration is signed, but not by the key that this key ring derives.
    #[error("the repository's configuration was swapped: it belongs to another key")]
    SwappedConfig,
    /// The repository is not the one that a recovery kit was made for.
    #[error("the repository is not the one that the recovery kit is for")]
    OtherRepository,
    /// A recovery kit's text has a mistake.
    #[error("recovery kit, line {line}: {problem}")]
    RecoveryKit {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
}

fn wrapping_kind(kind: WrappingKind) -> &'static str {
    match kind {
        WrappingKind::Passphrase => "a passphrase",
        WrappingKind::Recovery => "a recovery kit",
        WrappingKind::Recipient => "an age or SSH key",
    }
}
