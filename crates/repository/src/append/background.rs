//! The thread that merges the index's runs, writes its manifest and makes parity of packs that were
//! closed, so that no put waits for it.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use holdall_format::PackName;

use crate::index::Index;
use crate::parity;
use crate::storage::layout::Layout;

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
    pub(crate) fn start(index: Arc<Index>, layout: &Layout) -> Self {
        let shared = Arc::new(Shared::default());
        let thread = {
            let (index, shared) = (index.clone(), shared.clone());
            let mut new_packs = NewPacks::since_now(&index, layout);
            let work = move || work(&index, &mut new_packs, &shared);
            std::thread::Builder::new().name("index".into()).spawn(work)
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

/// The packs that were closed since the start. Older ones without parity are for a repair.
struct NewPacks {
    layout: Layout,
    seen: BTreeSet<PackName>,
}

impl NewPacks {
    fn since_now(index: &Index, layout: &Layout) -> Self {
        let seen = index.state().packs.iter().map(|pack| pack.name).collect();
        Self { layout: layout.clone(), seen }
    }

    /// Makes parity of the new ones, where any is wanted. What fails is missing, and told by nobody
    /// before a repair makes it: a pack without parity is as safe as its disk.
    fn protect(&mut self, index: &Index) {
        let state = index.state();
        if state.packs.iter().all(|pack| self.seen.contains(&pack.name)) {
            return;
        }
        let percent = parity::percent(&self.layout).unwrap_or_default();
        for pack in state.packs.iter() {
            let is_new = self.seen.insert(pack.name);
            // Of one that was closed long ago nobody knows here whether it is as it was.
            if is_new && percent > 0 && !self.layout.pack_parity(&pack.name).exists() {
                let _ = parity::make(&self.layout, &pack.name, percent);
            }
        }
    }
}

fn work(index: &Index, new_packs: &mut NewPacks, shared: &Shared) {
    let mut wishes = shared.lock();
    loop {
        if wishes.should_stop {
            drop(wishes);
            new_packs.protect(index);
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
        new_packs.protect(index);
        wishes = shared.lock();
    }
}
