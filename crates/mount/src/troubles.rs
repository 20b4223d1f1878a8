//! What could not be read, told once.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use holdall_engine::EngineError;
use holdall_format::Shown;

use crate::Trouble;

/// Paths that are remembered as told. Those beyond are not told.
const TOLD_MAX: usize = 10_000;

/// Who is told.
pub(crate) struct Troubles {
    tell: Box<dyn Fn(Trouble) + Send + Sync>,
    told: Mutex<HashSet<Vec<u8>>>,
    /// Whether it was told that nothing can be asked.
    is_away: AtomicBool,
}

impl Troubles {
    pub(crate) fn new(tell: Box<dyn Fn(Trouble) + Send + Sync>) -> Self {
        Self { tell, told: Mutex::default(), is_away: AtomicBool::new(false) }
    }

    /// Something could be asked.
    pub(crate) fn answered(&self) {
        self.is_away.store(false, Ordering::Relaxed);
    }

    /// The repository could not be asked. Nobody is told of what they ended themselves.
    pub(crate) fn away(&self, error: &EngineError) {
        if !error.is_interrupted() && !self.is_away.swap(true, Ordering::Relaxed) {
            let words = format!("{error}; what is read meanwhile fails, and later is tried again");
            (self.tell)(Trouble { is_damage: false, words });
        }
    }

    /// What is at a path cannot be had.
    pub(crate) fn at(&self, path: &[u8], reason: &str, is_damage: bool) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() < TOLD_MAX && told.insert(path.to_vec()) {
            (self.tell)(Trouble { is_damage, words: format!("{}: {reason}", Shown(path)) });
        }
    }

    /// Whether it was told that something at that path cannot be had.
    pub(crate) fn was_told(&self, path: &[u8]) -> bool {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).contains(path)
    }
}
