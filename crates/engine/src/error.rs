//! Why a run of the engine ended without its result.

use holdall_crypto::CryptoError;
use holdall_format::{FormatError, ObjectId};
use holdall_protocol::RepositoryError;
use holdall_sys::limits::Lack;
use holdall_tree::{BuildError, TreeError};

use crate::walked::FullWalk;

/// Why a backup, restore, listing or check ended. Nothing that was acknowledged before is lost, and
/// calling again is safe.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The repository did not do what it was asked.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// A key does not fit, or sealed bytes do not open.
    #[error(transparent)]
    Crypto(#[from] CryptoError),
    /// Bytes in the repository are not what they should be.
    #[error("{what} is damaged: {reason}")]
    Damaged {
        /// The record, node or chunk.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A commit was refused since something that an earlier snapshot has is missing.
    #[error("the repository is damaged: it acknowledged {} objects that it does not have", ids.len())]
    Lost {
        /// What is missing.
        ids: Vec<ObjectId>,
    },
    /// The snapshot that a run builds on is damaged.
    #[error("the snapshot before cannot be read: {0}")]
    Parent(Box<EngineError>),
    /// What was sealed on this computer does not open to what was to be sealed. It was not sent.
    #[error("a block failed its self-check and was not sent: {reason}")]
    SelfCheck {
        /// What came out of it.
        reason: String,
    },
    /// What changed is not known after all. A backup begins again, and looks at everything.
    #[error("everything is to be looked at: {0}")]
    NeedsFullWalk(#[from] FullWalk),
    /// What a snapshot says of itself does not fit into a record, or could not be sealed. Nothing that
    /// is stored is affected.
    #[error("the snapshot's record cannot be made: {0}")]
    Record(CryptoError),
    /// No snapshot answers to that name.
    #[error("no snapshot {wanted}: {reason}")]
    NoSnapshot {
        /// As it was asked for.
        wanted: String,
        /// None found, or several.
        reason: String,
    },
    /// No record can be put in a place.
    #[error("no record for {file}: {reason}")]
    NoRecord {
        /// The place, as a file of the repository.
        file: String,
        /// None is known, or several.
        reason: &'static str,
    },
    /// The snapshot has no such path.
    #[error("{path} is not in snapshot {snapshot}")]
    NoPath {
        /// The path.
        path: String,
        /// The snapshot's short id.
        snapshot: String,
    },
    /// A source or a target cannot be used at all.
    #[error("{path}: {reason}")]
    Path {
        /// The path.
        path: String,
        /// Why not, and what to do.
        reason: String,
    },
    /// The system refused something that the run cannot do without.
    #[error("{what}: {source}")]
    Io {
        /// What was done to which file.
        what: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// None of a backup's sources could be read. Nothing was committed.
    #[error("nothing was stored: none of the sources could be read")]
    NothingRead,
    /// The caller wished to stop. Nothing was committed after the last checkpoint.
    #[error("interrupted")]
    Interrupted,
}

impl EngineError {
    /// Wraps a system error.
    pub fn io(what: impl Into<String>, source: std::io::Error) -> Self {
        Self::Io { what: what.into(), source }
    }

    /// The error of a run that cannot go on since the process lacks something of its own, if that is what
    /// the system says of `path`: all that comes next would fail likewise.
    pub(crate) fn lack(path: &[u8], what: &str, error: &std::io::Error) -> Option<Self> {
        Lack::of(error)?;
        let again = error.raw_os_error().map(std::io::Error::from_raw_os_error)?;
        Some(Self::io(format!("{}: {what}", path.escape_ascii()), again))
    }

    /// Says why stored bytes were refused: for a version that is to come, or because they are
    /// damaged.
    pub fn unreadable(what: impl Into<String>, error: &FormatError) -> Self {
        RepositoryError::unreadable(what, error).into()
    }

    /// Whether another process uses the repository in a way that this one has to wait for.
    pub fn is_in_use(&self) -> bool {
        matches!(self, Self::Repository(RepositoryError::InUse { .. }))
    }

    /// Whether it says that something stored is damaged or gone, and not that nothing can be asked.
    pub fn is_damage(&self) -> bool {
        is_damaged(self)
    }

    /// Whether the caller wished to stop.
    pub fn is_interrupted(&self) -> bool {
        matches!(self, Self::Interrupted | Self::Repository(RepositoryError::Interrupted))
    }

    /// Says that something was sealed wrongly.
    pub(crate) fn self_check(reason: impl ToString) -> Self {
        Self::SelfCheck { reason: reason.to_string() }
    }

    /// Says that something stored is not what it should be.
    pub fn damaged(what: impl Into<String>, reason: impl ToString) -> Self {
        Self::Damaged { what: what.into(), reason: reason.to_string() }
    }
}

impl From<FormatError> for EngineError {
    fn from(error: FormatError) -> Self {
        Self::unreadable("stored data", &error)
    }
}

impl From<TreeError<EngineError>> for EngineError {
    fn from(error: TreeError<EngineError>) -> Self {
        match error {
            TreeError::Source(error) => error,
            TreeError::Node { node, error } => Self::unreadable(format!("node {node}"), &error),
            other => Self::damaged("a tree", other),
        }
    }
}

impl From<BuildError<EngineError>> for EngineError {
    fn from(error: BuildError<EngineError>) -> Self {
        match error {
            BuildError::Sink(error) => error,
            other => Self::damaged("the new tree", other),
        }
    }
}

/// Whether an error says that something stored is damaged: the rest can still be restored.
pub(crate) fn is_damaged(error: &EngineError) -> bool {
    match error {
        EngineError::Damaged { .. } | EngineError::Crypto(_) => true,
        EngineError::Repository(error) => {
            is_damage(error) || matches!(error, RepositoryError::Refused { .. })
        }
        _ => false,
    }
}

/// Whether an answer says that something stored is damaged, rather than that nothing can be asked.
pub(crate) fn is_damage(error: &RepositoryError) -> bool {
    matches!(error, RepositoryError::MissingObjects { .. } | RepositoryError::Damaged { .. })
}
