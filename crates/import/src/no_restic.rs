//! What stands in the place of restic's repositories where this was built without them: nothing.

use std::path::Path;

use holdall_engine::{EngineError, Entries, ForeignTree};

use crate::{ImportError, ResticSnapshot, UnreadSnapshot};

/// No repository.
pub struct ResticRepository(std::convert::Infallible);

impl ResticRepository {
    /// Says that there is none.
    ///
    /// # Errors
    /// [`ImportError::NotBuilt`].
    pub fn check(_: &Path) -> Result<(), ImportError> {
        Err(ImportError::NotBuilt)
    }

    /// Says that there is none.
    ///
    /// # Errors
    /// [`ImportError::NotBuilt`].
    pub fn open(_: &Path, _: &str) -> Result<Self, ImportError> {
        Err(ImportError::NotBuilt)
    }

    /// Its snapshots.
    ///
    /// # Errors
    /// Never.
    pub fn snapshots(&self) -> Result<(Vec<ResticSnapshot>, Vec<UnreadSnapshot>), ImportError> {
        match self.0 {}
    }

    /// A snapshot with its paths as its tree has them.
    ///
    /// # Errors
    /// Never.
    pub fn placed(&self, _: &ResticSnapshot) -> Result<ResticSnapshot, ImportError> {
        match self.0 {}
    }

    /// What walks the tree of a snapshot.
    pub fn tree(&self, _: &ResticSnapshot, _: Option<&ResticSnapshot>) -> NoTree {
        match self.0 {}
    }
}

/// No tree.
pub struct NoTree(std::convert::Infallible);

impl ForeignTree for NoTree {
    fn walk(&mut self, _: &mut Entries<'_>) -> Result<(), EngineError> {
        match self.0 {}
    }
}
