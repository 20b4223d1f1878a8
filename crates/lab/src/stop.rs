//! The wish that a measurement ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::LabError;

/// A flag that somebody else sets when a measurement is to end, as Ctrl-C does.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    flag: Arc<AtomicBool>,
}

impl Stop {
    /// Watches `flag`.
    pub fn on(flag: Arc<AtomicBool>) -> Self {
        Self { flag }
    }

    /// Whether it is to end.
    pub fn is_wished(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// The flag itself.
    pub fn flag(&self) -> &AtomicBool {
        &self.flag
    }

    /// Goes on unless it is to end.
    ///
    /// # Errors
    /// [`LabError::Interrupted`].
    pub fn check(&self) -> Result<(), LabError> {
        if self.is_wished() { Err(LabError::Interrupted) } else { Ok(()) }
    }
}
