//! The states of a history, and looking at many of them on all cores.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;

use super::{History, Image, Moment, choices};
use crate::Random;

/// What a folder may be found as after the power was cut.
#[derive(Debug)]
pub struct State {
    /// The folder.
    pub image: Image,
    /// What the process had said until then.
    pub said: String,
    /// The seed, the moment and what survived, for people.
    pub what: String,
}

/// States of a history, no two alike: the regular ones of every moment, and drawn ones besides, about
/// `share` in all.
#[must_use]
pub fn states(history: &History, seed: u64, share: usize) -> Vec<State> {
    let mut random = Random::new(seed);
    let mut seen = HashSet::new();
    let mut states = Vec::new();
    let moments: Vec<Moment<'_>> = history.moments().collect();
    let more = share / moments.len().max(1);
    for (number, moment) in moments.iter().enumerate() {
        for choice in choices(history, *moment, &mut random, more) {
            let image = history.image(*moment, &choice);
            let mut hasher = DefaultHasher::new();
            (&image, moment.said.len()).hash(&mut hasher);
            if seen.insert(hasher.finish()) {
                let what = format!("seed {seed}, moment {number}, {choice:?}");
                states.push(State { image, said: moment.said.to_owned(), what });
            }
        }
    }
    states
}

/// A folder in memory where there is one: nothing of it has to outlive the test.
///
/// # Errors
/// If it cannot be made.
pub fn memory() -> io::Result<TempDir> {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() { tempfile::tempdir_in(shared) } else { tempfile::tempdir() }
}

/// Checks all items, with a folder in memory for each thread, on as many threads as there are cores;
/// returns why some failed.
pub fn failing<T: Sync>(
    items: &[T],
    check: impl Fn(&T, &Path) -> Result<(), String> + Sync,
) -> Vec<String> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let fail = |reason| failed.lock().unwrap_or_else(PoisonError::into_inner).push(reason);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let folder = match memory() {
                    Ok(folder) => folder,
                    Err(error) => return fail(error.to_string()),
                };
                while let Some(item) = items.get(next.fetch_add(1, Ordering::SeqCst)) {
                    check(item, folder.path()).unwrap_or_else(fail);
                }
            });
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner)
}
