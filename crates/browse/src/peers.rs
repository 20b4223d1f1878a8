//! Whose connections are served: those of one's own take what there is, those of other users a small share of it.
//!
//! Who is another user of the computer may connect, too, and has shown nothing yet. As root one may use the browser of an
//! ordinary user: that counts as one's own from when it has shown the cookie, or the password of WebDAV.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use holdall_sys::{tcp, users};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::jobs::lock;

/// Connections at the same time.
const OWN: usize = 64;
/// Connections of others at the same time.
const OF_OTHERS: usize = 8;

/// Who has how many connections.
pub(crate) struct Peers {
    known: Mutex<HashSet<u32>>,
    own: Arc<Semaphore>,
    of_others: Arc<Semaphore>,
}

/// A connection that is served.
pub(crate) struct Peer {
    user: Option<u32>,
    _place: OwnedSemaphorePermit,
}

impl Peers {
    pub(crate) fn new() -> Self {
        Self {
            known: Mutex::new(HashSet::from([users::effective_uid()])),
            own: Arc::new(Semaphore::new(OWN)),
            of_others: Arc::new(Semaphore::new(OF_OTHERS)),
        }
    }

    /// A place for a connection; for another's, nothing if they have all of theirs.
    pub(crate) async fn admit(&self, own: SocketAddr, peer: SocketAddr) -> Option<Peer> {
        let user = tcp::peer_user(own, peer);
        let is_known = user.is_some_and(|user| lock(&self.known).contains(&user));
        let place = match is_known {
            true => Arc::clone(&self.own).acquire_owned().await.ok()?,
            false => Arc::clone(&self.of_others).try_acquire_owned().ok()?,
        };
        Some(Peer { user, _place: place })
    }

    /// Notes that a connection showed the cookie or the password.
    pub(crate) fn know(&self, peer: &Peer) {
        lock(&self.known).extend(peer.user);
    }
}
