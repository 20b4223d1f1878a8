//! The thread that merges the index's runs and writes its manifest, so that no put waits for it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::index::Index;

#[derive(Debug, Default)]
struct Wishes {
    has_work: bool,
    should_stop: bool,
}

#[derive(Debug, Default)]
struct Shared {
    wishes: Mutex<Wishes>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Wishes> {
        self.wishes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread; dropping it stops it, saves the index and waits for the end.
#[derive(Debug)]
pub(crate) struct Background {
    index: Arc<Index>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    pub(crate) fn start(index: Arc<Index>) -> Self {
        let shared = Arc::new(Shared::default());
        let thread = {
            let (index, shared) = (index.clone(), shared.clone());
            std::thread::Builder::new().name("index".into()).spawn(move || work(&index, &shared))
        };
        // Without the thread, runs stay unmerged: slower, not wrong.
        Self { index, shared, thread: thread.ok() }
    }

    /// Says that the index changed.
    pub(crate) fn wake(&self) {
        self.shared.lock().has_work = true;
        self.shared.changed.notify_one();
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.index.stop_merging();
        self.shared.lock().should_stop = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic in there costs what is derived, nothing else.
            let _ = thread.join();
        }
        // What is not saved is found again at the next start.
        let _ = self.index.save_changes();
    }
}

fn work(index: &Index, shared: &Shared) {
    let mut wishes = shared.lock();
    loop {
        if wishes.should_stop {
            return;
        }
        if !wishes.has_work {
            wishes = shared.changed.wait(wishes).unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        wishes.has_work = false;
        drop(wishes);
        // A run that is damaged shows at the next lookup, and a full disk at the next put; until
        // then more runs are only slower.
        while matches!(index.merge_some(), Ok(true)) {}
        let _ = index.save_if_due();
        wishes = shared.lock();
    }
}
