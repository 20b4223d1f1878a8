//! What all stages of one run share: the first failure, and what is on its way.

use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::Scope;

use holdall_format::ObjectId;
use holdall_tree::PathKey;

use crate::pipeline::budget::Budget;
use crate::pipeline::stage::{self, FailUnlessDone};
use crate::records::lost::Lost;
use crate::run::lock;
use crate::{EngineError, Run};

/// Shared by all stages of one run.
pub(crate) struct Shared<'a> {
    pub(crate) run: &'a Run,
    pub(crate) budget: Arc<Budget>,
    /// Nodes of the parents, which the repository has for certain.
    parent_nodes: Mutex<HashSet<[u8; 16]>>,
    /// What the parents have and the repository has lost.
    pub(crate) lost: Lost,
    flight: Mutex<Flight>,
    landed: Condvar,
    failed: AtomicBool,
}

#[derive(Default)]
struct Flight {
    blocks: u64,
    /// How often everything that was wanted before became blocks.
    flushes: u64,
    failure: Option<EngineError>,
}

impl<'a> Shared<'a> {
    pub(crate) fn new(run: &'a Run, budget: Arc<Budget>) -> Self {
        Self {
            run,
            budget,
            parent_nodes: Mutex::default(),
            lost: Lost::default(),
            flight: Mutex::default(),
            landed: Condvar::new(),
            failed: AtomicBool::new(false),
        }
    }

    /// The same for a run that sends again what was lost.
    pub(crate) fn without(self, lost: Lost) -> Self {
        Self { lost, ..self }
    }

    /// Runs a stage on a thread of its own; its failure ends the run, and so does that there is no thread
    /// for it.
    ///
    /// `stage` holds the queues whose end tells other stages that the work is done. They are dropped
    /// only when a failure is known, so that a stage which failed or panicked never looks like one
    /// that is done, and nothing short is committed. `run` must not take one of them with it.
    pub(crate) fn spawn<'scope, S: Send + 'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        stage: S,
        run: impl FnOnce(&mut S) -> Result<(), EngineError> + Send + 'scope,
    ) {
        self.spawn_nth(scope, 0, stage, run);
    }

    /// Runs a thread of a stage, the first of which is number 0: the stage does without others that cannot
    /// be started.
    pub(crate) fn spawn_nth<'scope, S: Send + 'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        number: usize,
        stage: S,
        run: impl FnOnce(&mut S) -> Result<(), EngineError> + Send + 'scope,
    ) {
        let run = |stage: &mut S| self.noted(run(stage)).unwrap_or_default();
        stage::start(scope, number, stage, |error| self.fail(error), run);
    }

    /// Notes that something of the source is not in the snapshot as it should be.
    ///
    /// # Errors
    /// This process lacks what reading takes: nothing may be committed without what it could not read.
    pub(crate) fn left_out(
        &self,
        path: &PathKey,
        what: &str,
        error: &io::Error,
    ) -> Result<(), EngineError> {
        let path = path.to_absolute();
        if let Some(lack) = EngineError::lack(&path, what, error) {
            return Err(lack);
        }
        self.run.problem(&path, format!("{what}: {error}"));
        Ok(())
    }

    /// What ends the run if it is dropped before it is done: before the queues of the thread that holds it.
    pub(super) fn guard(&self) -> FailUnlessDone<impl Fn(EngineError)> {
        FailUnlessDone::new(|error| self.fail(error))
    }

    /// A stage's result; its failure ends the run.
    pub(crate) fn noted<T>(&self, result: Result<T, EngineError>) -> Option<T> {
        result.map_err(|error| self.fail(error)).ok()
    }

    /// Keeps the first failure and ends all waiting. A stage that lost its neighbour may tell so
    /// before the neighbour tells why: that is no failure of its own.
    pub(crate) fn fail(&self, error: EngineError) {
        let mut flight = lock(&self.flight);
        match &flight.failure {
            None => flight.failure = Some(error),
            Some(EngineError::Interrupted) if self.run.check().is_ok() => {
                flight.failure = Some(error);
            }
            Some(_) => {}
        }
        drop(flight);
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

    /// Notes that everything that was wanted before a flush became blocks.
    pub(super) fn flushed(&self) {
        lock(&self.flight).flushes += 1;
        self.landed.notify_all();
    }

    /// Waits until so many flushes were noted and everything that took off is durable. No queue is
    /// waited at: a wish in the queue of a stage that failed is never answered, nor taken back.
    ///
    /// # Errors
    /// [`EngineError::Interrupted`] if any stage failed.
    pub(super) fn wait_landed(&self, flushes: u64) -> Result<(), EngineError> {
        let mut flight = lock(&self.flight);
        while (flight.flushes < flushes || flight.blocks > 0) && !self.failed() {
            flight = self.landed.wait(flight).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        drop(flight);
        if self.failed() { Err(EngineError::Interrupted) } else { Ok(()) }
    }

    /// Notes nodes of the parents.
    pub(crate) fn note_parents(&self, nodes: &[ObjectId]) {
        if !nodes.is_empty() {
            let there = nodes.iter().filter(|node| !self.lost.has(node));
            lock(&self.parent_nodes).extend(there.map(half));
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

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;

    use super::*;

    fn shared(run: &Run) -> Shared<'_> {
        Shared::new(run, Budget::new(1 << 20, 1 << 10))
    }

    fn damaged() -> EngineError {
        EngineError::damaged("a block", "a reason")
    }

    /// The end of a stage's queue, which notes whether the failure was known when it came.
    struct Queue<'a>(&'a Shared<'a>, &'a AtomicBool);

    impl Drop for Queue<'_> {
        fn drop(&mut self) {
            self.1.store(self.0.failed(), Ordering::Relaxed);
        }
    }

    #[test]
    fn a_stage_that_failed_or_panicked_never_looks_like_one_that_is_done() {
        let known = |run: fn() -> Result<(), EngineError>| {
            let (of, known) = (Run::new(), AtomicBool::new(false));
            let shared = shared(&of);
            // A panic of a thread goes on in the scope.
            let _ = catch_unwind(AssertUnwindSafe(|| {
                thread::scope(|scope| shared.spawn(scope, Queue(&shared, &known), |_| run()));
            }));
            known.into_inner()
        };
        assert!(known(|| Err(damaged())), "a failure");
        assert!(known(|| panic!("on purpose")), "a panic");
        assert!(!known(|| Ok(())), "it is done");
    }

    #[test]
    fn a_flush_that_a_failed_stage_never_takes_is_not_waited_for() {
        let run = Run::new();
        let shared = shared(&run);
        shared.flushed();
        assert!(shared.wait_landed(1).is_ok());
        thread::scope(|scope| {
            let waiting = scope.spawn(|| shared.wait_landed(2));
            shared.fail(damaged());
            assert!(matches!(waiting.join().unwrap(), Err(EngineError::Interrupted)));
        });
    }

    #[test]
    fn a_thread_of_others_that_panics_ends_the_run() {
        let run = Run::new();
        let shared = shared(&run);
        shared.guard().done();
        assert!(!shared.failed());
        let _ = catch_unwind(AssertUnwindSafe(|| {
            let _guard = shared.guard();
            panic!("on purpose");
        }));
        assert!(shared.failed());
    }

    #[test]
    fn a_stage_that_lost_its_neighbour_does_not_hide_why() {
        let run = Run::new();
        let shared = shared(&run);
        for error in [EngineError::Interrupted, damaged(), EngineError::Interrupted] {
            shared.fail(error);
        }
        assert!(matches!(shared.result(), Err(EngineError::Damaged { .. })));
    }

    #[test]
    fn whoever_interrupts_a_run_is_told_just_that() {
        let run = Run::new();
        let shared = shared(&run);
        run.stop();
        [EngineError::Interrupted, damaged()].into_iter().for_each(|error| shared.fail(error));
        assert!(matches!(shared.result(), Err(EngineError::Interrupted)));
    }
}
