//! What is shown, and where.

use std::net::SocketAddr;
use std::sync::Arc;

use holdall_engine::UnlockedRepository;
use holdall_sys::Clock;

/// What to show, and where.
pub struct BrowseOptions {
    /// The repository, open.
    pub access: Arc<UnlockedRepository>,
    /// The repository as people write it.
    pub name: String,
    /// A loopback address; port 0 takes a free one.
    pub listen: SocketAddr,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
}
