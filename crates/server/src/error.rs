//! Why a server could not start, or an administrator's request was not carried out.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use holdall_protocol::tls::TlsError;
use holdall_protocol::{Denial, RepositoryError};

/// Why something that concerns the whole server failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// Another server, or an administrator's command, holds the data folder.
    #[error("the data folder {} is in use by another holdall server or command", path.display())]
    DataFolderInUse {
        /// The folder.
        path: PathBuf,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address that was asked for.
        address: SocketAddr,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The system refused something in the data folder.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// What was done.
        what: &'static str,
        /// To which file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A file of the data folder has not the form that it should have.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No server ever used that folder.
    #[error("there is no server's data folder at {}", path.display())]
    NoServer {
        /// The folder.
        path: PathBuf,
    },
    /// The database of machines and invites failed.
    #[error("the server's database server.redb: {0}")]
    Database(#[from] redb::Error),
    /// A repository did not do what it was asked.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// A key could not be made ready for TLS.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// What an administrator asked for breaks a rule.
    #[error("{reason}")]
    Refused {
        /// Which rule, and what would be allowed.
        reason: String,
    },
    /// Whoever asked may not have that done.
    #[error("{who} may not do this: that takes the right to {right}")]
    NotAllowed {
        /// Who asked.
        who: String,
        /// What it takes.
        right: String,
    },
    /// The running server did not answer an administrator as it should.
    #[error("the server's administration socket: {reason}")]
    Admin {
        /// What went wrong.
        reason: String,
    },
}

impl ServerError {
    pub(crate) fn io(what: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { what, path: path.to_owned(), source }
    }

    /// What the system answered, if it was the system that refused.
    pub fn system(&self) -> Option<std::io::ErrorKind> {
        match self {
            Self::Listen { source, .. } | Self::Io { source, .. } => Some(source.kind()),
            Self::Database(redb::Error::Io(error)) => Some(error.kind()),
            _ => None,
        }
    }

    pub(crate) fn refused(reason: impl Into<String>) -> Self {
        Self::Refused { reason: reason.into() }
    }
}

/// What a machine is told of a failure inside the server: what failed, without the server's paths.
impl From<ServerError> for RepositoryError {
    fn from(error: ServerError) -> Self {
        match error {
            ServerError::Refused { reason } => Self::denied(Denial::Other, reason),
            ServerError::Io { what, source, .. } => Self::io(what, source),
            ServerError::Repository(error) => error,
            other => Self::Io {
                what: "the server's own state".into(),
                source: std::io::Error::other(other.to_string()),
            },
        }
    }
}
