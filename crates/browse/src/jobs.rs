//! Restores under way and those that ended, one thread each: what the pages begin, show and stop.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use holdall_engine::{
    EngineError, InPlace, Overwrite, RestoreOptions, RestoreSummary, Run, Snapshot,
    UnlockedRepository,
};
use holdall_format::Shown;
use holdall_meter::{counted, size};

use crate::names;
use crate::problem::Problem;

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

/// What became of one thing.
pub(crate) struct Told {
    pub(crate) path: Vec<u8>,
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
        // What a run met counts for all of its items.
        let mut problems_before = 0;
        for (path, is_dir) in &self.wish.items {
            if self.run.stopping() {
                return;
            }
            let restored = self.restore((access, day), path, *is_dir);
            let problems = self.run.take_problems().into_iter().take(PROBLEMS_NAMED);
            let mut problems: Vec<_> = problems
                .map(|problem| format!("{}: {}", Shown(&problem.path), problem.reason))
                .collect();
            let (is_well, words) = match restored {
                Ok((mut summary, to)) => {
                    let so_far = summary.problems;
                    summary.problems = so_far.saturating_sub(problems_before);
                    problems_before = so_far;
                    problems.append(&mut summary.notes);
                    (summary.problems == 0, words(&summary, &to))
                }
                Err(error) => (false, error.to_string()),
            };
            lock(&self.told).push(Told { path: path.clone(), is_well, words, problems });
        }
    }

    /// Restores one thing; says what it is called there.
    fn restore(
        &self,
        (access, day): (&UnlockedRepository, &str),
        path: &[u8],
        is_dir: bool,
    ) -> Result<(RestoreSummary, PathBuf), EngineError> {
        let Wish { snapshot, folder, overwrite, .. } = &self.wish;
        let own = OsStr::from_bytes(names::last(path));
        let in_place = folder.is_none().then(|| InPlace::of(path, is_dir, *overwrite, day));
        let (target, name) = match (&in_place, folder) {
            (Some(place), _) => (place.target.clone(), place.name.clone()),
            (None, Some(folder)) if is_dir => (folder.join(own), folder.join(own)),
            (None, folder) => {
                let folder = folder.clone().unwrap_or_default();
                (folder.clone(), folder.join(own))
            }
        };
        let options = RestoreOptions {
            // What is there stays, unless it was ticked that it shall not.
            overwrite: Some(overwrite.unwrap_or(Overwrite::Never)),
            // Nobody typed this folder's name within the target: another user may have put a link there.
            in_place: in_place.is_some() || is_dir,
            ..RestoreOptions::default()
        };
        let done =
            holdall_engine::restore(access, snapshot, Some(path), &target, &options, &self.run)?;
        if let Some(place) = in_place {
            place.finish()?;
        }
        Ok((done, name))
    }
}

fn words(summary: &RestoreSummary, to: &Path) -> String {
    let RestoreSummary { files, dirs, bytes, skipped, problems, .. } = summary;
    let to = Shown(to.as_os_str().as_bytes()).to_string();
    let mut words = match files + dirs {
        0 => "nothing new was made".to_owned(),
        items => format!("{}, {} restored as {to}", counted(items, "item"), size(*bytes)),
    };
    if *skipped > 0 {
        words.push_str(&format!("; {} skipped, as something is there", counted(*skipped, "item")));
    }
    if *problems > 0 {
        words.push_str(&format!(
            "; {} could not be restored, or not wholly",
            counted(*problems, "item")
        ));
    }
    words
}

/// Locks a mutex whose data stays valid if a holder panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
