//! What a run shares with whoever watches it: counters, problems, and the wish to stop.

use std::ops::AddAssign;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use holdall_meter::StageCounters;
use holdall_protocol::WireMeter;

use crate::EngineError;
use crate::item_fate::{ItemFate, ItemWatcher};

/// Items and plain content bytes: what something on its way stands for, which counts when it has arrived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) items: u64,
    pub(crate) bytes: u64,
}

impl AddAssign for Amount {
    fn add_assign(&mut self, more: Self) {
        self.items += more.items;
        self.bytes = self.bytes.saturating_add(more.bytes);
    }
}

/// One thing that could not be read, written or restored; the run went on without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The path, as raw bytes.
    pub path: Vec<u8>,
    /// What failed and why.
    pub reason: String,
}

/// A run in progress. Shared between the threads of the run and one that shows it.
///
/// Counters only rise, unless the run begins anew, so a reader may look at any moment.
#[derive(Default)]
pub struct Run {
    /// Items (files, directories, links, ...) dealt with: of a backup those that are durable in the repository,
    /// and not those that were only read.
    pub items: AtomicU64,
    /// Plain content bytes dealt with, likewise.
    pub bytes: AtomicU64,
    /// Items that are expected in all, where that is known; else 0.
    pub items_expected: AtomicU64,
    /// Plain content bytes that are expected in all, where that is known; else 0.
    pub bytes_expected: AtomicU64,
    /// Whether what is expected is expected to be new.
    pub expects_new: AtomicBool,
    /// What the connections count that the run uses, if they are to servers.
    pub wire: WireMeter,
    stop: AtomicBool,
    problems: Mutex<Vec<Problem>>,
    problem_count: AtomicU64,
    damage_count: AtomicU64,
    changed: Mutex<Vec<Vec<u8>>>,
    changed_count: AtomicU64,
    vanished: Mutex<Vec<Vec<u8>>>,
    vanished_count: AtomicU64,
    left_out: Mutex<Vec<Problem>>,
    filled: Mutex<Vec<Vec<u8>>>,
    rules_unmet: Mutex<Vec<String>>,
    waits_for: Mutex<Option<(Vec<u8>, Instant)>>,
    stages: Mutex<Option<Stages>>,
    items_watcher: OnceLock<ItemWatcher>,
}

/// Gives the stages' counters as they are now.
type Stages = Box<dyn Fn() -> Vec<StageCounters> + Send>;

/// Problems, and paths of changed files, beyond this many are counted, not kept.
const PROBLEMS_KEPT: usize = 1000;

impl Run {
    /// A run that has not begun.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wishes the run to stop soon.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether somebody wishes the run to stop.
    pub fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Ends the caller's work if somebody wishes the run to stop.
    ///
    /// # Errors
    /// [`EngineError::Interrupted`].
    pub fn check(&self) -> Result<(), EngineError> {
        if self.stopping() { Err(EngineError::Interrupted) } else { Ok(()) }
    }

    /// Counts items and bytes that were dealt with.
    pub fn advance(&self, items: u64, bytes: u64) {
        self.items.fetch_add(items, Ordering::Relaxed);
        add_bytes(&self.bytes, bytes);
    }

    /// Counts what was dealt with.
    pub(crate) fn done(&self, amount: Amount) {
        self.advance(amount.items, amount.bytes);
    }

    /// So much is expected in all; whether it is new.
    pub fn expect(&self, items: u64, bytes: u64, new: bool) {
        self.items_expected.store(items, Ordering::Relaxed);
        self.bytes_expected.store(bytes, Ordering::Relaxed);
        self.expects_new.store(new, Ordering::Relaxed);
    }

    /// So much is expected in all, and is new, unless it is known by now what is expected.
    pub fn expect_if_unknown(&self, items: u64, bytes: u64) {
        let (unknown, order) = (0, Ordering::Relaxed);
        if self.items_expected.compare_exchange(unknown, items, order, order).is_ok() {
            self.bytes_expected.store(bytes, Ordering::Relaxed);
            self.expects_new.store(true, Ordering::Relaxed);
        }
    }

    /// Forgets what was counted and noted: the run begins anew.
    pub(crate) fn begin_again(&self) {
        let counters = [
            &self.items,
            &self.bytes,
            &self.problem_count,
            &self.damage_count,
            &self.changed_count,
            &self.vanished_count,
        ];
        counters.into_iter().for_each(|counter| counter.store(0, Ordering::Relaxed));
        lock(&self.problems).clear();
        lock(&self.changed).clear();
        lock(&self.vanished).clear();
        lock(&self.left_out).clear();
        lock(&self.filled).clear();
    }

    /// Notes something that failed while the run goes on. The first thousand are kept.
    pub fn problem(&self, path: &[u8], reason: impl Into<String>) {
        self.problem_count.fetch_add(1, Ordering::Relaxed);
        let mut kept = lock(&self.problems);
        if kept.len() < PROBLEMS_KEPT {
            kept.push(Problem { path: path.to_vec(), reason: reason.into() });
        }
    }

    /// Notes a problem whose cause is damage in the repository.
    pub(crate) fn damage(&self, path: &[u8], reason: impl Into<String>) {
        self.damage_count.fetch_add(1, Ordering::Relaxed);
        self.problem(path, reason);
    }

    /// How many of the problems were damage in the repository.
    pub(crate) fn damage_count(&self) -> u64 {
        self.damage_count.load(Ordering::Relaxed)
    }

    /// How many problems there were.
    pub fn problem_count(&self) -> u64 {
        self.problem_count.load(Ordering::Relaxed)
    }

    /// Takes the problems noted since the last call.
    pub fn take_problems(&self) -> Vec<Problem> {
        std::mem::take(&mut *lock(&self.problems))
    }

    /// Notes a file that changed while it was read: it was stored as it was read, which is no problem.
    /// The first thousand are kept.
    pub(crate) fn changed(&self, path: &[u8]) {
        self.changed_count.fetch_add(1, Ordering::Relaxed);
        let mut kept = lock(&self.changed);
        if kept.len() < PROBLEMS_KEPT {
            kept.push(path.to_vec());
        }
    }

    /// How many files changed while they were read.
    pub fn changed_count(&self) -> u64 {
        self.changed_count.load(Ordering::Relaxed)
    }

    /// Takes the paths of files that changed while they were read, noted since the last call.
    pub fn take_changed(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *lock(&self.changed))
    }

    /// Notes what was gone before it was read, in a folder that is still there: as if it had gone before the run, which
    /// is no problem. The first thousand are kept.
    pub(crate) fn vanished(&self, path: &[u8]) {
        self.vanished_count.fetch_add(1, Ordering::Relaxed);
        let mut kept = lock(&self.vanished);
        if kept.len() < PROBLEMS_KEPT {
            kept.push(path.to_vec());
        }
    }

    /// How much was gone before it was read.
    pub fn vanished_count(&self) -> u64 {
        self.vanished_count.load(Ordering::Relaxed)
    }

    /// Takes the paths of what was gone before it was read, noted since the last call.
    pub fn take_vanished(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *lock(&self.vanished))
    }

    /// Notes a directory that is left out, or all that is in it, and no rule names it; or rules that do not count.
    pub(crate) fn leave_out(&self, path: &[u8], reason: &str) {
        let mut kept = lock(&self.left_out);
        if kept.len() < PROBLEMS_KEPT {
            kept.push(Problem { path: path.to_vec(), reason: reason.to_owned() });
        }
    }

    /// Takes the directories that were left out without a rule, noted since the last call.
    pub fn take_left_out(&self) -> Vec<Problem> {
        std::mem::take(&mut *lock(&self.left_out))
    }

    /// Notes a source that has something, or had and is empty now.
    pub(crate) fn filled(&self, path: &[u8]) {
        lock(&self.filled).push(path.to_vec());
    }

    /// Takes the sources that have something, or had and are empty now, noted since the last call: to be given to the
    /// next run.
    pub fn take_filled(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *lock(&self.filled))
    }

    /// Looks at what is at `path`, which may be somebody who does not answer.
    pub(crate) fn looking_at<R>(&self, path: Vec<u8>, look: impl FnOnce() -> R) -> R {
        *lock(&self.waits_for) = Some((path, Instant::now()));
        let seen = look();
        *lock(&self.waits_for) = None;
        seen
    }

    /// The path that is looked at now, and for how long.
    pub fn waits_for(&self) -> Option<(Vec<u8>, Duration)> {
        lock(&self.waits_for).as_ref().map(|(path, since)| (path.clone(), since.elapsed()))
    }

    /// Notes which rules met nothing.
    pub(crate) fn rules_unmet(&self, rules: Vec<String>) {
        *lock(&self.rules_unmet) = rules;
    }

    /// Takes the rules that met nothing.
    pub(crate) fn take_rules_unmet(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.rules_unmet))
    }

    /// Has `tell` called with each absolute path that a backup leaves out by a rule and, if `wants_taken`, that it
    /// takes: in the order of the tree, from one of the run's threads. A run that begins anew tells all again.
    pub fn watch_items(
        &self,
        wants_taken: bool,
        tell: impl Fn(&[u8], ItemFate<'_>) + Send + Sync + 'static,
    ) {
        // Who came first stays.
        let _ = self.items_watcher.set(ItemWatcher::new(wants_taken, Box::new(tell)));
    }

    /// Who wants to know what becomes of each path.
    pub(crate) fn items_watcher(&self) -> Option<&ItemWatcher> {
        self.items_watcher.get()
    }

    /// The stages' counters as they are now; empty before the run begins.
    pub fn stages(&self) -> Vec<StageCounters> {
        lock(&self.stages).as_ref().map(|stages| stages()).unwrap_or_default()
    }

    /// Says where the stages' counters are.
    pub(crate) fn watch_stages(&self, stages: impl Fn() -> Vec<StageCounters> + Send + 'static) {
        *lock(&self.stages) = Some(Box::new(stages));
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Run").field("items", &self.items).finish_non_exhaustive()
    }
}

/// Adds bytes to a counter. A few sparse files are together larger than can be counted: it stays at the end then.
pub(crate) fn add_bytes(counter: &AtomicU64, more: u64) {
    let sum = |bytes: u64| Some(bytes.saturating_add(more));
    let _ = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
}

/// Locks a mutex whose data stays valid if a holder panicked: counters and lists.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
