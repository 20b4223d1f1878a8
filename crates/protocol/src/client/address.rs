//! Where a server is and who it is.

use std::fmt;

use holdall_format::PublicKey;

/// Where a server may be reached, which key it must show, and which of its repositories is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress {
    /// `HOST:PORT` each, tried in turn. Names are looked up anew for every connection.
    pub hosts: Vec<String>,
    /// The server's identity; any other key is refused.
    pub identity: PublicKey,
    /// The repository's name; `None` for the one that the machine was paired for.
    pub repository: Option<String>,
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.hosts.first().map_or("", String::as_str);
        let name = self.repository.as_deref().unwrap_or_default();
        write!(out, "https://{host}/{name}")
    }
}
