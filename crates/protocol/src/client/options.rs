//! How patient and how wide a client is.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::pace::{RateLimit, WireMeter};

/// How a client uses its connections.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// How long a lost server is asked again, counted from the last answer or the request's start,
    /// whichever is later.
    pub retry_for: Duration,
    /// How long a server that cannot be reached in the first place is tried again; zero tries once.
    pub reach_for: Duration,
    /// Most connections that carry blocks at once; more callers wait. At least 1.
    pub streams: usize,
    /// Time for all attempts at one connection together: every host, name look-up, handshake.
    pub connect_timeout: Duration,
    /// Set to end every request and every waiting with [`crate::RepositoryError::Interrupted`].
    pub interrupt: Arc<AtomicBool>,
    /// Local addresses to connect from, taken in turn; empty for any.
    pub bind: Vec<IpAddr>,
    /// How fast it sends.
    pub upload: Option<RateLimit>,
    /// Most bytes received in a second, over all connections.
    pub download_bytes_per_second: Option<u64>,
    /// Whether its packets say that they may wait for others, for whatever on the way looks at that.
    pub may_wait: bool,
    /// What counts how long its connections carried and waited.
    pub meter: WireMeter,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            retry_for: Duration::from_secs(300),
            reach_for: Duration::ZERO,
            streams: 4,
            connect_timeout: Duration::from_secs(8),
            interrupt: Arc::default(),
            bind: Vec::new(),
            upload: None,
            download_bytes_per_second: None,
            may_wait: false,
            meter: WireMeter::default(),
        }
    }
}
