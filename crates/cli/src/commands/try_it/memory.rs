//! The most memory that client and server had resident during one run.

use serde::Serialize;

use super::server::Server;
use crate::terminal::output::size;

/// Peaks of one run, or the higher ones of several; `None` where the system does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Memory {
    client_peak_bytes: Option<u64>,
    server_peak_bytes: Option<u64>,
}

impl Memory {
    /// Starts both peaks anew. Where that is not allowed the old ones stay, so that too much may be
    /// told, and never too little.
    pub(crate) fn begin(server: &Server) {
        for process in ["self".to_owned(), server.id().to_string()] {
            let _ = std::fs::write(format!("/proc/{process}/clear_refs"), "5");
        }
    }

    /// The peaks since then.
    pub(crate) fn since_begin(server: &Server) -> Self {
        Self {
            client_peak_bytes: holdall_sys::memory::peak_rss_bytes().ok(),
            server_peak_bytes: holdall_sys::memory::peak_rss_bytes_of(server.id()).ok(),
        }
    }

    /// The higher of both.
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            client_peak_bytes: self.client_peak_bytes.max(other.client_peak_bytes),
            server_peak_bytes: self.server_peak_bytes.max(other.server_peak_bytes),
        }
    }

    /// In words.
    pub(crate) fn words(&self) -> String {
        let told = |bytes: Option<u64>| bytes.map_or_else(|| "unknown".into(), size);
        let (client, server) = (told(self.client_peak_bytes), told(self.server_peak_bytes));
        format!("memory at most: client {client}, server {server}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_higher_peaks_of_two_runs_are_kept() {
        let one = Memory { client_peak_bytes: Some(5_000_000), server_peak_bytes: None };
        let other = Memory { client_peak_bytes: Some(3), server_peak_bytes: Some(7) };
        let both = one.max(other);
        assert_eq!(both.words(), "memory at most: client 5.0 MB, server 7 B");
    }
}
