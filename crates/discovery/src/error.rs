//! Why nothing is announced or found.

/// Why nothing is announced or found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// This program was built without it.
    #[error("this holdall was built without discovery")]
    NotBuilt,
    /// The system has no sockets, threads or interfaces for it.
    #[error("multicast DNS does not work here: {0}")]
    System(String),
    /// The caller is ending.
    #[error("interrupted")]
    Interrupted,
}
