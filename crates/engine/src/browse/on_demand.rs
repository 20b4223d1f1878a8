//! What looks into a repository for long and is used seldom: opened when it is needed, and closed after a while, so that
//! others may write meanwhile.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::run::lock;
use crate::{EngineError, UnlockedRepository};

/// How it is opened.
type Open<V> = fn(Arc<UnlockedRepository>) -> Result<V, EngineError>;

/// A viewer that is open while it is used.
pub struct OnDemand<V> {
    access: Arc<UnlockedRepository>,
    open: Open<V>,
    viewer: Mutex<Option<Arc<V>>>,
    used: Mutex<Instant>,
}

impl<V> OnDemand<V> {
    /// Opens nothing yet.
    pub fn new(access: Arc<UnlockedRepository>, open: Open<V>) -> Self {
        Self { access, open, viewer: Mutex::default(), used: Mutex::new(Instant::now()) }
    }

    /// The viewer.
    ///
    /// # Errors
    /// If the repository cannot be asked, as while another process writes to its directory.
    pub fn get(&self) -> Result<Arc<V>, EngineError> {
        let mut viewer = lock(&self.viewer);
        *lock(&self.used) = Instant::now();
        if let Some(viewer) = &*viewer {
            return Ok(Arc::clone(viewer));
        }
        let new = Arc::new((self.open)(Arc::clone(&self.access))?);
        Ok(Arc::clone(viewer.insert(new)))
    }

    /// Lets others write to the repository if the viewer was not asked for within that time, and is not in use.
    pub fn rest_after(&self, unused: Duration) {
        if lock(&self.used).elapsed() < unused {
            return;
        }
        let mut viewer = lock(&self.viewer);
        let rested = viewer.take_if(|viewer| Arc::strong_count(viewer) == 1);
        let is_idle = viewer.is_none();
        drop(viewer);
        // Ending a session asks the server.
        drop(rested);
        if is_idle {
            self.access.repository().rest();
        }
    }
}
