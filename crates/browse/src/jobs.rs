//! Restores under way and those that ended, one thread each: what the pages begin, show and stop.

mod batch;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use holdall_engine::{
    EngineError, InPlace, Overwrite, RestoreOptions, RestoreSummary, Run, Snapshot,
    UnlockedRepository,
};
use holdall_format::Shown;
use holdall_meter::{counted, size};

use crate::problem::Problem;
use batch::Batch;

/// Restores that are remembered.
const REMEMBERED: usize = 100;
/// Problems of one thing that are named.
const PROBLEMS_NAMED: usize = 20;

/// The restores of this run.
#[derive(Default)]
pub(crate) struct Jobs {
    jobs: Mutex<Vec<Arc<Job>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// One restore.
pub(crate) struct Job {
    pub(crate) number: usize,
    pub(crate) wish: Wish,
    pub(crate) run: Run,
    pub(crate) has_ended: AtomicBool,
    pub(crate) told: Mutex<Vec<Told>>,
}

/// What is to be restored, and where to.
pub(crate) struct Wish {
    pub(crate) snapshot: Snapshot,
    /// Absolute paths in the snapshot, and whether a folder is there.
    pub(crate) items: Vec<(Vec<u8>, bool)>,
    /// The folder to restore into; nothing for where it was.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) overwrite: Option<Overwrite>,
}

/// What became of some things that were restored together.
pub(crate) struct Told {
    /// The first of them, and how many they are.
    pub(crate) first: Vec<u8>,
    pub(crate) items: usize,
    pub(crate) is_well: bool,
    pub(crate) words: String,
    pub(crate) problems: Vec<String>,
}

/// Notes the end of a restore, however it ends.
struct Ending(Arc<Job>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.has_ended.store(true, Ordering::Release);
    }
}

impl Jobs {
    /// Wishes all of them to stop; says whether one was under way.
    pub(crate) fn stop_all(&self) -> bool {
        let jobs = lock(&self.jobs);
        jobs.iter().for_each(|job| job.run.stop());
        jobs.iter().any(|job| !job.has_ended.load(Ordering::Acquire))
    }

    /// Waits for those that were stopped.
    pub(crate) fn wait(&self) {
        let threads = std::mem::take(&mut *lock(&self.threads));
        threads.into_iter().for_each(|thread| drop(thread.join()));
    }

    /// The one of that number.
    ///
    /// # Errors
    /// 404 if there is none.
    pub(crate) fn find(&self, number: &str) -> Result<Arc<Job>, Problem> {
        let number = number.parse().ok();
        let jobs = lock(&self.jobs);
        let found = jobs.iter().find(|job| Some(job.number) == number);
        found.map(Arc::clone).ok_or_else(|| Problem::not_found("There is no such restore."))
    }

    /// All of them, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Job>> {
        lock(&self.jobs).clone()
    }

    /// Begins one; gives its number. `day` is today's, for names.
    ///
    /// # Errors
    /// If there is no other thread.
    pub(crate) fn begin(
        &self,
        access: &Arc<UnlockedRepository>,
        day: String,
        wish: Wish,
    ) -> Result<usize, Problem> {
        let mut jobs = lock(&self.jobs);
        let number = jobs.last().map_or(1, |job| job.number + 1);
        let (run, has_ended, told) = Default::default();
        let job = Arc::new(Job { number, wish, run, has_ended, told });
        let (working, access) = (Arc::clone(&job), Arc::clone(access));
        let work = move || {
            let job = Ending(working);
            job.0.work(&access, &day);
        };
        let thread = holdall_sys::thread::start_alone(work).map_err(|_| Problem::busy())?;
        let mut threads = lock(&self.threads);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
        jobs.push(job);
        if jobs.len() > REMEMBERED {
            jobs.remove(0);
        }
        Ok(number)
    }
}

impl Job {
    fn work(&self, access: &UnlockedRepository, day: &str) {
        // What a run met counts for all of its batches.
        let mut problems_before = 0;
        for batch in batch::all_of(&self.wish, day) {
            if self.run.stopping() {
                return;
            }
            let restored = self.restore(access, &batch);
            let problems = self.run.take_problems().into_iter().take(PROBLEMS_NAMED);
            let mut problems: Vec<_> = problems
                .map(|problem| format!("{}: {}", Shown(&problem.path), problem.reason))
                .collect();
            let (is_well, words) = match restored {
                Ok(mut summary) => {
                    let so_far = summary.problems;
                    summary.problems = so_far.saturating_sub(problems_before);
                    problems_before = so_far;
                    problems.append(&mut summary.notes);
                    (summary.problems == 0, words(&summary, &batch.called))
                }
                Err(error) => (false, error.to_string()),
            };
            let items = batch.items.len();
            let first = batch.items.into_iter().next().unwrap_or_default();
            lock(&self.told).push(Told { first, items, is_well, words, problems });
        }
    }

    fn restore(
        &self,
        access: &UnlockedRepository,
        batch: &Batch,
    ) -> Result<RestoreSummary, EngineError> {
        let options = RestoreOptions {
            // What is there stays, unless it was ticked that it shall not.
            overwrite: Some(self.wish.overwrite.unwrap_or(Overwrite::Never)),
            in_place: batch.is_guarded,
            select: batch.selection(),
            ..RestoreOptions::default()
        };
        let (snapshot, path) = (&self.wish.snapshot, Some(&batch.path[..]));
        let target = &batch.target;
        let done = holdall_engine::restore(access, snapshot, path, target, &options, &self.run)?;
        InPlace::finish_all(&batch.places)?;
        Ok(done)
    }
}

/// What became of all that a restore met: each is in one of the counts.
fn words(summary: &RestoreSummary, called: &str) -> String {
    let &RestoreSummary { files, dirs, kept_dirs, kept, skipped, bytes, problems, .. } = summary;
    let counts = [
        (files, "file", format!(", {}, restored", size(bytes))),
        (dirs.saturating_sub(kept_dirs), "folder", " restored".to_owned()),
        (kept, "file", " there already and kept".to_owned()),
        (kept_dirs, "folder", " there already".to_owned()),
        (skipped.saturating_sub(kept), "item", " left out that could not be made".to_owned()),
        (problems, "item", " not restored, or not wholly".to_owned()),
    ];
    let some = counts.into_iter().filter(|(count, ..)| *count > 0);
    let mut said: Vec<_> =
        some.map(|(count, what, became)| format!("{}{became}", counted(count, what))).collect();
    if said.is_empty() {
        said.push("nothing is in it".to_owned());
    }
    format!("to {called}: {}", said.join("; "))
}

/// Locks a mutex whose data stays valid if a holder panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
