//! Why a repository did not do what it was asked.

use holdall_format::{FormatError, ObjectId, RecordHash, SessionId};
use serde::{Deserialize, Serialize};

/// Why something is not allowed, as far as another remedy belongs to it. An unknown cause reads as [`Denial::Other`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Denial {
    /// The repository's quota is reached.
    Quota,
    /// The machine has the right to restore only.
    ReadOnly,
    /// A recovery kit signed in, which restores only.
    RecoveryKit,
    /// The machine's key was revoked.
    RevokedKey,
    /// The invite is unknown, used or expired.
    Invite,
    /// The short code is wrong, used or expired.
    ShortCode,
    /// The key that signed in belongs to no machine.
    UnknownMachine,
    /// A machine asks for a deletion without an administrator's token.
    Deletion,
    /// What helps stands in the reason.
    Explained,
    /// Any other cause.
    #[default]
    #[serde(other)]
    Other,
}

/// Why a request to a repository failed. Nothing acknowledged before is lost by any of these.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepositoryError {
    /// There is no repository at that place. Making one, or naming another place, helps.
    #[error("there is no repository at {place}")]
    NoRepository {
        /// Path or address.
        place: String,
    },
    /// A repository exists where one was to be made.
    #[error("there is a repository at {place} already")]
    AlreadyExists {
        /// Path or address.
        place: String,
    },
    /// Somebody else holds the repository's lease. Calling again later may succeed.
    #[error("the repository at {place} is in use by {holder}")]
    InUse {
        /// Path or address.
        place: String,
        /// Who holds it, as far as that is known.
        holder: String,
    },
    /// This identity may not do that. Calling again does not help.
    #[error("not allowed: {reason}")]
    NotAllowed {
        /// What is not allowed and what would be needed.
        reason: String,
        /// What kind of cause it is.
        cause: Denial,
    },
    /// The server cannot be reached, or the connection was lost for longer than the retry time.
    #[error("the server at {address} cannot be reached: {reason}")]
    Unreachable {
        /// Host and port.
        address: String,
        /// The last error.
        reason: String,
    },
    /// The server at that address has another identity than the pinned one.
    #[error("the server at {address} is not the one that this machine was paired with")]
    WrongServer {
        /// Host and port.
        address: String,
    },
    /// What was sent breaks the format or a rule of the protocol. Calling again does not help.
    #[error("refused: {reason}")]
    Refused {
        /// Which rule.
        reason: String,
    },
    /// The session is unknown or has lapsed; a new one must be opened.
    #[error("session {session} is unknown or has lapsed")]
    NoSession {
        /// The session.
        session: SessionId,
    },
    /// Another record of this machine was committed in between; nothing was published.
    #[error("another record was committed in between")]
    HeadMoved {
        /// The machine's head now.
        head: Option<RecordHash>,
    },
    /// The records that the caller knows are not those that are stored; listing them anew helps.
    #[error("the records are not those that were known")]
    OtherRecords,
    /// Objects that should be stored are not, or no copy of them can be read.
    #[error("{} objects are missing, among them {}", ids.len(), ids.first().map(ToString::to_string).unwrap_or_default())]
    MissingObjects {
        /// Which, in part.
        ids: Vec<ObjectId>,
    },
    /// Stored bytes are not what they should be.
    #[error("{what} is damaged: {reason}")]
    Damaged {
        /// The file or object.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Stored bytes have a version that this program does not know. Another one may read them;
    /// nothing is wrong with them.
    #[error("{what} cannot be read by this holdall: {reason}")]
    OtherFormat {
        /// The file or object.
        what: String,
        /// Which version it has, and which is known.
        reason: String,
    },
    /// No room is left where the repository is kept.
    #[error("no room is left: {place}")]
    NoRoom {
        /// The full place, and what was done there.
        place: String,
    },
    /// The system refused a read or a write.
    #[error("{what}: {source}")]
    Io {
        /// What was done to which file.
        what: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Everything was stopped because the caller is ending.
    #[error("interrupted")]
    Interrupted,
}

/// Whoever holds a lease that does not say whose it is.
const SOMEBODY: &str = "another process";

impl RepositoryError {
    /// A refusal for that cause.
    pub fn denied(cause: Denial, reason: impl Into<String>) -> Self {
        Self::NotAllowed { reason: reason.into(), cause }
    }

    /// Says why stored bytes were refused: for another version, or because they are damaged.
    pub fn unreadable(what: impl Into<String>, error: &FormatError) -> Self {
        let (what, reason) = (what.into(), error.to_string());
        if error.is_other_version() {
            Self::OtherFormat { what, reason }
        } else {
            Self::Damaged { what, reason }
        }
    }

    /// Says that somebody holds the lease, of whom nothing is known.
    pub fn in_use(place: impl Into<String>) -> Self {
        Self::InUse { place: place.into(), holder: SOMEBODY.into() }
    }

    /// Wraps a system error, telling a full disk from others.
    pub fn io(what: impl Into<String>, source: std::io::Error) -> Self {
        let what = what.into();
        match source.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                Self::NoRoom { place: what }
            }
            _ => Self::Io { what, source },
        }
    }
}

impl From<FormatError> for RepositoryError {
    fn from(error: FormatError) -> Self {
        Self::Refused { reason: error.to_string() }
    }
}
