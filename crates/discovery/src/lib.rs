//! Servers on the network: a server announces where it is, and a machine looks who does, by DNS-SD over multicast DNS.
//!
//! Nothing here is proven. Anybody on the network may announce anything, under any name and with any fingerprint: what is
//! found is a list to choose an address from, and no more. Who is at that address, an invite or a short code says
//! (`protocol`). So all that is read here is bounded and checked for its form, and shown to nobody without being escaped.
//!
//! ```text
//! NAME (ab2c)._holdall._tcp.local  ->  SRV: port, host  ->  A, AAAA
//!                                      TXT: v=1, id=<fingerprint of the identity>, name=<NAME>
//! ```
//!
//! `found` is what is made of an answer, pure; `announcement` and `finding` are the two ends, by `mdns-sd`. Without the feature
//! `mdns` both say that they were not built.

mod error;
#[cfg_attr(
    not(any(feature = "mdns", test)),
    expect(dead_code, reason = "there are no answers to read")
)]
mod found;

#[cfg(feature = "mdns")]
mod announcement;
#[cfg(feature = "mdns")]
mod finding;
#[cfg(not(feature = "mdns"))]
mod no_mdns;

pub use error::DiscoveryError;
pub use found::{Found, FoundServer};

#[cfg(feature = "mdns")]
pub use announcement::Announcement;
#[cfg(feature = "mdns")]
pub use finding::find_servers;
#[cfg(not(feature = "mdns"))]
pub use no_mdns::{Announcement, find_servers};

use std::net::SocketAddr;

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announced {
    /// Its name for people, at most 200 bytes.
    pub name: String,
    /// The fingerprint of its identity.
    pub fingerprint: String,
    /// Where it listens; an unspecified address is all that this computer has.
    pub listen: SocketAddr,
}

impl Announced {
    /// Whether others could reach it, so that announcing it makes sense.
    pub fn is_reachable(&self) -> bool {
        !self.listen.ip().to_canonical().is_loopback()
    }
}
