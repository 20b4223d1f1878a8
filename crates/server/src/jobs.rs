//! What the server does that takes long: scrubs, prunes, and the hourly round. Each has a number, a log, and can be
//! cancelled. The last ones are remembered as long as the server runs.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdall_lab::Stop;
use holdall_protocol::ScrubProgress;
use serde::{Deserialize, Serialize};

use crate::ServerError;
use crate::auth::actor::Actor;
use crate::recent::Recent;

/// Jobs that are remembered, and lines of the log of each.
const JOBS_MOST: usize = 200;
const LINES_MOST: usize = 500;
/// Jobs that run or wait at once, of those that somebody asks for; and most characters of an error and of a line.
const RUNNING_MOST: usize = 20;
const TEXT_MOST: usize = 500;

/// A job, as an administrator sees it. Times are in nanoseconds since 1970 UTC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct JobEntry {
    /// What it is called.
    pub number: u64,
    /// What is done.
    pub what: String,
    /// For whom.
    pub who: String,
    /// When it began.
    pub begun_ns: i64,
    /// When it ended; `None` while it runs.
    pub ended_ns: Option<i64>,
    /// How it is.
    pub outcome: Outcome,
    /// Why it failed.
    pub error: Option<String>,
    /// Bytes read of all that are to be read, where it reads.
    pub progress: Option<JobProgress>,
    /// Steps that are done of all, where it has some.
    #[serde(default)]
    pub steps: Option<JobSteps>,
    /// What it was answered once it was done, as the command's own answer.
    pub answer: Option<serde_json::Value>,
    /// What it said, the oldest first. Empty where jobs are listed.
    pub lines: Vec<JobLine>,
}

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct JobProgress {
    /// Bytes read.
    pub done_bytes: u64,
    /// Of so many.
    pub total_bytes: u64,
    /// Bytes a second over the last minute.
    pub bytes_per_second: f64,
}

/// How many steps a job has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct JobSteps {
    /// So many.
    pub done: usize,
    /// Of so many.
    pub total: usize,
}

/// A line of a job's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct JobLine {
    /// When it was said.
    pub time_ns: i64,
    /// What.
    pub text: String,
}

/// How a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub enum Outcome {
    /// It runs.
    Running,
    /// It did what it was to do.
    Done,
    /// It did not, or something is not well of what it looked at.
    Failed,
    /// Somebody cancelled it, or the server ended.
    Cancelled,
}

/// All jobs of a server.
#[derive(Default)]
pub(crate) struct Jobs {
    last: AtomicU64,
    /// The oldest first.
    all: Mutex<VecDeque<Arc<Job>>>,
    is_ending: AtomicBool,
    /// Held by whatever measures this computer: two would measure each other.
    measuring: Mutex<()>,
}

/// One job.
pub(crate) struct Job {
    number: u64,
    what: String,
    pub(crate) actor: Actor,
    begun_ns: i64,
    /// Set when it is to end.
    pub(crate) should_stop: Arc<AtomicBool>,
    state: Mutex<JobState>,
}

#[derive(Default)]
struct JobState {
    ended: Option<Ended>,
    lines: VecDeque<JobLine>,
    progress: Option<ScrubProgress>,
    steps: Option<JobSteps>,
    recent: Recent,
    /// What is not well of what it looked at.
    found: Option<String>,
    /// Whether its turn came.
    has_begun: bool,
}

struct Ended {
    ns: i64,
    outcome: Outcome,
    error: Option<String>,
    answer: Option<serde_json::Value>,
}

impl Jobs {
    /// The same for somebody who asks for it.
    ///
    /// # Errors
    /// [`ServerError::Refused`] if too many run already.
    pub(crate) fn begin_asked(
        &self,
        actor: Actor,
        what: String,
        now_ns: i64,
    ) -> Result<Arc<Job>, ServerError> {
        let running = self.all().iter().filter(|job| job.lock().ended.is_none()).count();
        if running >= RUNNING_MOST {
            let reason = format!(
                "{running} jobs run or wait; `holdall admin jobs` shows them, and cancels them"
            );
            return Err(ServerError::refused(reason));
        }
        Ok(self.begin(actor, what, now_ns))
    }

    /// Begins one. It lasts until [`Job::end`].
    pub(crate) fn begin(&self, actor: Actor, what: String, now_ns: i64) -> Arc<Job> {
        let job = Arc::new(Job {
            number: self.last.fetch_add(1, Ordering::Relaxed) + 1,
            what,
            actor,
            begun_ns: now_ns,
            should_stop: Arc::default(),
            state: Mutex::default(),
        });
        let mut all = self.all();
        all.push_back(Arc::clone(&job));
        while all.len() > JOBS_MOST {
            // The oldest that ended.
            let ended = all.iter().position(|job| job.lock().ended.is_some());
            all.remove(ended.unwrap_or(0));
        }
        drop(all);
        job.should_stop.store(self.is_ending.load(Ordering::Acquire), Ordering::Release);
        job
    }

    /// The jobs that run and those that ended last, the newest first.
    pub(crate) fn entries(&self, now_ns: i64) -> Vec<JobEntry> {
        self.all().iter().rev().map(|job| job.entry(now_ns, false)).collect()
    }

    /// One of them, with its log.
    ///
    /// # Errors
    /// [`ServerError::Refused`] if there is none of that number.
    pub(crate) fn entry(&self, number: u64, now_ns: i64) -> Result<JobEntry, ServerError> {
        Ok(self.find(number)?.entry(now_ns, true))
    }

    /// Has one end early, and tells how it is. What it did by then stays done.
    ///
    /// # Errors
    /// [`ServerError::Refused`] if there is none of that number that runs.
    pub(crate) fn cancel(&self, number: u64, now_ns: i64) -> Result<JobEntry, ServerError> {
        let job = self.find(number)?;
        if job.lock().ended.is_some() {
            return Err(ServerError::refused(format!("job {number} has ended already")));
        }
        job.should_stop.store(true, Ordering::Release);
        Ok(job.entry(now_ns, true))
    }

    /// Has all of them end, and those that begin from now on.
    pub(crate) fn end_all(&self) {
        self.is_ending.store(true, Ordering::Release);
        self.all().iter().for_each(|job| job.should_stop.store(true, Ordering::Release));
    }

    /// The turn to measure this computer, until it is dropped.
    ///
    /// # Errors
    /// [`ServerError::Refused`] if something else has it.
    pub(crate) fn turn_to_measure(&self) -> Result<MutexGuard<'_, ()>, ServerError> {
        self.measuring.try_lock().map_err(|_| {
            ServerError::refused(
                "another test of this server's lab is under way; wait until it is done",
            )
        })
    }

    fn find(&self, number: u64) -> Result<Arc<Job>, ServerError> {
        let found = self.all().iter().find(|job| job.number == number).cloned();
        found.ok_or_else(|| {
            ServerError::refused(format!(
                "no job {number} is remembered; `holdall admin jobs` lists them"
            ))
        })
    }

    fn all(&self) -> MutexGuard<'_, VecDeque<Arc<Job>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    /// What it is called.
    #[cfg(any(feature = "web", test))]
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The wish that it ends, for what it measures.
    pub(crate) fn stop(&self) -> Stop {
        Stop::on(Arc::clone(&self.should_stop))
    }

    /// Adds a line to its log.
    pub(crate) fn say(&self, text: &str, now_ns: i64) {
        let mut state = self.lock();
        let text = text.chars().take(TEXT_MOST).collect();
        state.lines.push_back(JobLine { time_ns: now_ns, text });
        if state.lines.len() > LINES_MOST {
            state.lines.pop_front();
        }
    }

    /// Notes how far it is.
    pub(crate) fn note_progress(&self, progress: ScrubProgress, now_ns: i64) {
        let mut state = self.lock();
        state.progress = Some(progress);
        state.recent.note(progress.bytes_done, self.seconds(now_ns));
    }

    /// Notes how many steps are done.
    pub(crate) fn note_steps(&self, steps: JobSteps) {
        self.lock().steps = Some(steps);
    }

    fn seconds(&self, now_ns: i64) -> f64 {
        now_ns.saturating_sub(self.begun_ns) as f64 / 1e9
    }

    /// Notes what is not well of what it looked at, the first such thing.
    pub(crate) fn found(&self, what: &str) {
        self.lock().found.get_or_insert_with(|| what.chars().take(TEXT_MOST).collect());
    }

    /// Its turn has come. Says whether it is to be done; not if it was cancelled while it waited.
    pub(crate) fn begin(&self) -> bool {
        let is_wanted = !self.should_stop.load(Ordering::Acquire);
        self.lock().has_begun = is_wanted;
        is_wanted
    }

    /// It ended so.
    pub(crate) fn end(&self, result: Result<serde_json::Value, String>, now_ns: i64) {
        let was_stopped = self.should_stop.load(Ordering::Acquire);
        let has_begun = self.lock().has_begun;
        let (outcome, error, answer) = match result {
            _ if was_stopped && !has_begun => {
                let words = "it was cancelled while it waited for its turn, and did nothing";
                (Outcome::Cancelled, Some(words.to_owned()), None)
            }
            _ if was_stopped => (Outcome::Cancelled, None, None),
            Ok(answer) => (Outcome::Done, None, Some(answer).filter(|answer| !answer.is_null())),
            Err(error) => (Outcome::Failed, Some(error.chars().take(TEXT_MOST).collect()), None),
        };
        let mut state = self.lock();
        let found = state.found.clone();
        let outcome =
            if outcome == Outcome::Done && found.is_some() { Outcome::Failed } else { outcome };
        let error = error.or(found);
        state.ended = Some(Ended { ns: now_ns, outcome, error, answer });
    }

    fn entry(&self, now_ns: i64, with_log: bool) -> JobEntry {
        let state = self.lock();
        let ended = state.ended.as_ref();
        JobEntry {
            number: self.number,
            what: self.what.clone(),
            who: self.actor.who.clone(),
            begun_ns: self.begun_ns,
            ended_ns: ended.map(|ended| ended.ns),
            outcome: ended.map_or(Outcome::Running, |ended| ended.outcome),
            error: ended.and_then(|ended| ended.error.clone()),
            progress: state.progress(self.seconds(ended.map_or(now_ns, |ended| ended.ns))),
            steps: state.steps,
            answer: ended.filter(|_| with_log).and_then(|ended| ended.answer.clone()),
            lines: if with_log { state.lines.iter().cloned().collect() } else { Vec::new() },
        }
    }

    fn lock(&self) -> MutexGuard<'_, JobState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JobState {
    fn progress(&self, seconds: f64) -> Option<JobProgress> {
        let ScrubProgress { bytes_done, bytes_total } = self.progress?;
        let bytes_per_second = self.recent.rate(bytes_done, seconds);
        Some(JobProgress { done_bytes: bytes_done, total_bytes: bytes_total, bytes_per_second })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: i64 = 1_000_000_000;

    fn begun(jobs: &Jobs, what: &str) -> Arc<Job> {
        jobs.begin(Actor::terminal(), what.to_owned(), 0)
    }

    #[test]
    fn a_job_has_a_log_a_rate_of_the_last_minute_and_an_end() {
        let jobs = Jobs::default();
        let job = begun(&jobs, "scrub of attic");
        for second in 0..120 {
            let rate = if second < 60 { 100 } else { 10 };
            let done = if second < 60 { second * rate } else { 6000 + (second - 60) * rate };
            let progress = ScrubProgress { bytes_done: done as u64, bytes_total: 10_000 };
            job.note_progress(progress, second * SECOND_NS);
        }
        job.say("half of it", 7);
        let entry = jobs.entry(1, 120 * SECOND_NS).unwrap();
        let progress = entry.progress.unwrap();
        assert_eq!((progress.done_bytes, progress.total_bytes), (6590, 10_000));
        assert!((9.0..12.0).contains(&progress.bytes_per_second), "{progress:?}");
        assert_eq!(entry.lines, [JobLine { time_ns: 7, text: "half of it".into() }]);
        assert_eq!((entry.outcome, entry.ended_ns), (Outcome::Running, None));
        job.end(Ok("what came out".into()), 130 * SECOND_NS);
        let entry = jobs.entry(1, 200 * SECOND_NS).unwrap();
        assert_eq!((entry.outcome, entry.ended_ns), (Outcome::Done, Some(130 * SECOND_NS)));
        assert_eq!(entry.answer, Some("what came out".into()));
        assert!(jobs.cancel(1, 0).is_err() && jobs.cancel(2, 0).is_err());
    }

    #[test]
    fn a_job_is_cancelled_by_its_number_and_all_of_them_when_the_server_ends() {
        let jobs = Jobs::default();
        let [first, second] = ["one", "two"].map(|what| begun(&jobs, what));
        jobs.cancel(first.number(), 0).unwrap();
        assert!(first.should_stop.load(Ordering::Acquire));
        assert!(!second.should_stop.load(Ordering::Acquire));
        assert!(!first.begin() && second.begin(), "it is not its turn any more");
        first.end(Err("it was told to stop".into()), 1);
        let entry = jobs.entry(1, 1).unwrap();
        assert_eq!(entry.outcome, Outcome::Cancelled);
        assert!(entry.error.is_some_and(|words| words.contains("did nothing")));
        jobs.end_all();
        let third = begun(&jobs, "three");
        for job in [&second, &third] {
            assert!(job.should_stop.load(Ordering::Acquire));
        }
        second.end(Err("it was told to stop".into()), 1);
        let entry = jobs.entry(2, 1).unwrap();
        assert_eq!((entry.outcome, entry.error), (Outcome::Cancelled, None), "its turn had come");
    }

    #[test]
    fn only_so_many_are_remembered_and_those_that_run_among_them() {
        let jobs = Jobs::default();
        let running = begun(&jobs, "long");
        for _ in 0..JOBS_MOST + 20 {
            begun(&jobs, "short").end(Ok(serde_json::Value::Null), 0);
        }
        let entries = jobs.entries(0);
        assert_eq!(entries.len(), JOBS_MOST);
        assert!(entries.iter().any(|entry| entry.number == running.number()));
        assert!(entries.is_sorted_by(|one, other| one.number > other.number));
        for _ in 0..LINES_MOST + 1 {
            running.say("line", 0);
        }
        assert_eq!(jobs.entry(running.number(), 0).unwrap().lines.len(), LINES_MOST);
    }
}
