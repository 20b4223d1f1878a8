//! Every limit on what strangers and machines can make the server hold or wait for.

use std::time::Duration;

/// Limits of time and number. Limits of size are those of [`holdall_protocol::wire`].
#[derive(Debug, Clone)]
pub struct Limits {
    /// Most connections at once that have not shown yet who they are; of more, the oldest of the address that has
    /// the most is closed.
    pub arrivals: usize,
    /// Most connections at once that have; more wait, as long as there is room for arrivals.
    pub connections: usize,
    /// Most of them of one machine, which may run several clients; more are closed.
    pub connections_of_machine: usize,
    /// Most connections at once whose key is no machine's, browsers among them; of more, the oldest of the address
    /// that has the most is closed.
    pub strangers: usize,
    /// Most requests of one machine whose answers were not sent to their end yet; more are answered
    /// with 429. A client makes up to 13. More than half of [`Limits::workers`] counts as half.
    pub requests_of_machine: usize,
    /// Most requests that work on repositories at once; more wait.
    pub workers: usize,
    /// Most bytes of request bodies in memory at once, and as many of answers, half of either one machine's;
    /// more wait, but for small bodies. At least one largest body (16 MiB).
    pub body_bytes: usize,
    /// Most refused pairings of one address in a minute that are answered late; more end their connection.
    pub refused_pairings_of_address: u32,
    /// Most of all addresses together.
    pub refused_pairings: u32,
    /// How late they are answered. They wait where strangers' connections do, and make room as these do.
    pub refused_pairing_delay: Duration,
    /// From the first byte of a connection to the end of its TLS handshake.
    pub handshake: Duration,
    /// From the end of an answer to the end of the next request's head.
    pub idle: Duration,
    /// The same for a connection whose key is no machine's, and how long it may not move.
    pub idle_stranger: Duration,
    /// How long a connection may not move while a body should.
    pub stalled: Duration,
    /// How long requests under way may take when the server ends.
    pub shutdown: Duration,
    /// How often rules for keeping are applied, and what nothing needs is deleted.
    pub keep_house: Duration,
    /// How often packs are moved to storage places.
    pub settle: Duration,
    /// How often it is looked whether somebody is to be told how backups are.
    pub look_for_notices: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            arrivals: 384,
            connections: 256,
            connections_of_machine: 64,
            strangers: 64,
            requests_of_machine: 16,
            workers: 32,
            body_bytes: 64 << 20,
            refused_pairings_of_address: 20,
            refused_pairings: 200,
            refused_pairing_delay: Duration::from_secs(1),
            handshake: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            idle_stranger: Duration::from_secs(10),
            stalled: Duration::from_secs(60),
            shutdown: Duration::from_secs(4),
            keep_house: Duration::from_secs(3600),
            settle: Duration::from_secs(10),
            look_for_notices: Duration::from_secs(120),
        }
    }
}

/// A body may pass this slowly on average, and not more slowly: four streams over a line of 64 kbit/s are twice
/// as fast.
const LEAST_BYTES_PER_SECOND: u64 = 1 << 10;
/// And for no longer than this, in which a block passes at that rate: a longer body holds more memory.
const LONGEST_BODY_SECONDS: u64 = 4096;
/// A body up to this long needs no room of [`Limits::body_bytes`].
pub(crate) const SMALL_BODY_BYTES: u64 = 64 << 10;
/// Most bytes of one request's head.
pub(crate) const HEAD_MAX_BYTES: usize = 16 << 10;
/// Most lines of one request's head.
pub(crate) const HEAD_MAX_LINES: usize = 32;
/// Most bytes that are read ahead on one connection.
pub(crate) const READ_AHEAD_BYTES: usize = 256 << 10;

/// How long a body of that length may take to pass, besides a moment in which it does not move.
pub(crate) fn slowest_body(bytes: u64) -> Duration {
    Duration::from_secs((bytes / LEAST_BYTES_PER_SECOND).min(LONGEST_BODY_SECONDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_may_take_longer_the_longer_it_is_and_no_longer_than_an_hour_or_so() {
        let seconds = |bytes| slowest_body(bytes).as_secs();
        assert_eq!([100, 3 << 10, 4 << 20, 16 << 20].map(seconds), [0, 3, 4096, 4096]);
    }
}
