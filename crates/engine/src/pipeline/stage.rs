//! The threads of a run's stages: one that cannot be started, or that panics, ends the run.
//!
//! Stages wait for each other through queues, and the end of a queue tells that the work before it is done.
//! So a stage that is not there or died must say so before its queues end: nothing short counts as whole,
//! and nothing waits for it.

use std::sync::{Arc, Mutex};
use std::thread::Scope;

use holdall_sys::thread;

use crate::EngineError;
use crate::run::lock;

/// Ends the run with `fail` unless what it guards is done.
pub(crate) struct FailUnlessDone<F: Fn(EngineError)> {
    fail: F,
    is_done: bool,
}

impl<F: Fn(EngineError)> FailUnlessDone<F> {
    pub(crate) fn new(fail: F) -> Self {
        Self { fail, is_done: false }
    }

    /// Says that it ended in good order, be it with an error that was told.
    pub(crate) fn done(&mut self) {
        self.is_done = true;
    }
}

impl<F: Fn(EngineError)> Drop for FailUnlessDone<F> {
    fn drop(&mut self) {
        if !self.is_done {
            (self.fail)(EngineError::Interrupted);
        }
    }
}

/// A stage and what tells of its end, which is dropped first.
struct Guarded<F: Fn(EngineError), S> {
    guard: FailUnlessDone<F>,
    stage: S,
}

/// Runs a stage, or the thread of a stage that has that number from 0, on a thread of its own. `fail` gets
/// [`EngineError::Interrupted`] if it panics: before `stage`, with all queues that it holds, is dropped. If
/// no thread can be started, `fail` gets the error of the first one likewise; the stage does without the
/// others.
pub(crate) fn start<'scope, F, S>(
    scope: &'scope Scope<'scope, '_>,
    number: usize,
    stage: S,
    fail: F,
    run: impl FnOnce(&mut S) + Send + 'scope,
) where
    F: Fn(EngineError) + Clone + Send + 'scope,
    S: Send + 'scope,
{
    let held = Arc::new(Mutex::new(Some(stage)));
    let (taken, fail_there) = (Arc::clone(&held), fail.clone());
    let started = thread::start(scope, move || {
        let Some(stage) = lock(&taken).take() else { return };
        let mut guarded = Guarded { guard: FailUnlessDone::new(fail_there), stage };
        run(&mut guarded.stage);
        guarded.guard.done();
    });
    match started {
        // Before the stage is dropped, which is held here still.
        Err(error) if number == 0 => fail(EngineError::io("starting a thread", error)),
        _ => {}
    }
}
