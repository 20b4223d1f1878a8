//! What stands in the place of discovery where this was built without it: nothing.

use std::time::Duration;

use crate::{Announced, DiscoveryError, Found};

/// No announcement.
pub struct Announcement(std::convert::Infallible);

impl Announcement {
    /// Whether servers can be announced and found.
    pub const IS_BUILT: bool = false;

    /// Says that there is none.
    ///
    /// # Errors
    /// [`DiscoveryError::NotBuilt`].
    pub fn begin(_: Announced) -> Result<Self, DiscoveryError> {
        Err(DiscoveryError::NotBuilt)
    }

    /// Looks after it.
    pub fn look(&mut self) -> Option<String> {
        match self.0 {}
    }
}

/// Says that nothing can be found.
///
/// # Errors
/// [`DiscoveryError::NotBuilt`].
pub fn find_servers(_: Duration, _: impl Fn() -> bool) -> Result<Found, DiscoveryError> {
    Err(DiscoveryError::NotBuilt)
}
