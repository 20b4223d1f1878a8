//! Why the pages cannot be shown.

use std::net::SocketAddr;

/// Why nothing is listening.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrowseError {
    /// This holdall has no pages.
    #[error("this holdall was built without its pages")]
    NotBuilt,
    /// Others could reach it.
    #[error("{address} is not on loopback, and other computers could reach it")]
    NotLoopback {
        /// As it was asked for.
        address: SocketAddr,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// As it was asked for.
        address: SocketAddr,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The system refused what the pages cannot do without.
    #[error("{what}: {source}")]
    System {
        /// What was refused.
        what: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
}
