//! What stands in the place of the pages where this was built without them: nothing.

use crate::{BrowseError, BrowseOptions};

/// No pages.
pub struct Browse(std::convert::Infallible);

impl Browse {
    /// Whether there are pages.
    pub const IS_BUILT: bool = false;

    /// Says that there are none.
    ///
    /// # Errors
    /// [`BrowseError::NotBuilt`].
    pub fn start(_: BrowseOptions) -> Result<Self, BrowseError> {
        Err(BrowseError::NotBuilt)
    }

    /// The address to open.
    pub fn address(&self) -> String {
        match self.0 {}
    }

    /// Ends.
    pub fn shutdown(self) -> bool {
        match self.0 {}
    }
}
