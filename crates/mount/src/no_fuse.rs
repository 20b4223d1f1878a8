//! What stands in the place of the file system where this was built without it: nothing.

use std::path::Path;

use crate::{MountError, MountOptions};

/// No file system.
pub struct Mounted(std::convert::Infallible);

impl Mounted {
    /// Whether there is a file system.
    pub const IS_BUILT: bool = false;

    /// Says that there is none.
    ///
    /// # Errors
    /// [`MountError::NotBuilt`].
    pub fn check(_: &Path) -> Result<(), MountError> {
        Err(MountError::NotBuilt)
    }

    /// Says that there is none.
    ///
    /// # Errors
    /// [`MountError::NotBuilt`].
    pub fn start(_: MountOptions) -> Result<Self, MountError> {
        Err(MountError::NotBuilt)
    }

    /// Unmounts.
    ///
    /// # Errors
    /// Never.
    pub fn unmount(self) -> Result<bool, MountError> {
        match self.0 {}
    }
}
