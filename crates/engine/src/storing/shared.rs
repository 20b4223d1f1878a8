//! What all stages of one run share: the first failure, and what is on its way.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, Scope};

use holdall_format::ObjectId;

use crate::budget::Budget;
use crate::run::lock;
use crate::{EngineError, Run};

/// Shared by all stages of one run.
pub(crate) struct Shared<'a> {
    pub(crate) run: &'a Run,
    pub(crate) budget: Arc<Budget>,
    /// Nodes of the parents, which the repository has for certain.
    parent_nodes: Mutex<HashSet<[u8; 16]>>,
    flight: Mutex<Flight>,
    landed: Condvar,
    failed: AtomicBool,
}

#[derive(Default)]
struct Flight {
    blocks: u64,
    failure: Option<EngineError>,
}

/// Ends the run if the thread that holds it panics.
struct FailOnPanic<'a>(&'a Shared<'a>);

impl Drop for FailOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.fail(EngineError::Interrupted);
        }
    }
}

impl<'a> Shared<'a> {
    pub(crate) fn new(run: &'a Run, budget: Arc<Budget>) -> Self {
        Self {
            run,
            budget,
            parent_nodes: Mutex::default(),
            flight: Mutex::default(),
            landed: Condvar::new(),
            failed: AtomicBool::new(false),
        }
    }

    /// Runs a stage on a thread of its own; its failure ends the run.
    pub(crate) fn spawn<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        stage: impl FnOnce() -> Result<(), EngineError> + Send + 'scope,
    ) {
        scope.spawn(move || {
            // A stage that panicked must not look like one that is done.
            let _guard = FailOnPanic(self);
            self.noted(stage());
        });
    }

    /// A stage's result; its failure ends the run.
    pub(crate) fn noted<T>(&self, result: Result<T, EngineError>) -> Option<T> {
        result.map_err(|error| self.fail(error)).ok()
    }

    /// Keeps the first failure and ends all waiting.
    pub(crate) fn fail(&self, error: EngineError) {
        lock(&self.flight).failure.get_or_insert(error);
        self.failed.store(true, Ordering::Release);
        self.budget.close();
        // The lock is taken so that nobody is between looking and waiting.
        let _flight = lock(&self.flight);
        self.landed.notify_all();
    }

    /// Whether a stage failed; the others then end as soon as they can.
    pub(crate) fn failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Ends the caller's stage if another failed or somebody wishes the run to stop.
    ///
    /// # Errors
    /// [`EngineError::Interrupted`].
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        if self.failed() { Err(EngineError::Interrupted) } else { self.run.check() }
    }

    /// Ends with the first failure, if there was one.
    pub(crate) fn result(&self) -> Result<(), EngineError> {
        match lock(&self.flight).failure.take() {
            Some(error) => Err(error),
            None if self.failed() => Err(EngineError::Interrupted),
            None => Ok(()),
        }
    }

    /// Counts a block that was closed and is not yet durable.
    pub(super) fn take_off(&self) {
        lock(&self.flight).blocks += 1;
    }

    /// Counts blocks that became durable.
    pub(super) fn land(&self, blocks: u64) {
        lock(&self.flight).blocks -= blocks;
        self.landed.notify_all();
    }

    /// Waits until everything that took off is durable.
    ///
    /// # Errors
    /// [`EngineError::Interrupted`] if any stage failed.
    pub(super) fn wait_landed(&self) -> Result<(), EngineError> {
        let mut flight = lock(&self.flight);
        while flight.blocks > 0 && !self.failed() {
            flight = self.landed.wait(flight).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        drop(flight);
        if self.failed() { Err(EngineError::Interrupted) } else { Ok(()) }
    }

    /// Notes nodes of the parents.
    pub(crate) fn note_parents(&self, nodes: &[ObjectId]) {
        if !nodes.is_empty() {
            lock(&self.parent_nodes).extend(nodes.iter().map(half));
        }
    }

    /// Whether a node is one of the parents'.
    pub(super) fn is_parents(&self, id: &ObjectId) -> bool {
        lock(&self.parent_nodes).contains(&half(id))
    }
}

/// Half of an id: enough to tell nodes apart, as 2^64 of them would have to be made to meet.
fn half(id: &ObjectId) -> [u8; 16] {
    let mut half = [0; 16];
    half.iter_mut().zip(id.as_bytes()).for_each(|(to, from)| *to = *from);
    half
}
