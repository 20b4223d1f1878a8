//! The agent's own files: what it reads of them, and what it writes, also where the folder is full or damaged.

use std::time::{Duration, Instant};

use holdall_agent::journal::Journal;
use holdall_agent::{Conditions, Outlook, Pause, Report};
use holdall_state::AgentFiles;
use serde::Serialize;

use super::{Agent, now};
use crate::terminal::output::{Output, sentence};

/// When what could not be written is written again. Each attempt makes a file in a folder that the agent watches, so that
/// without this it would wake itself up.
const AGAIN: Duration = Duration::from_mins(1);

/// What the agent knows of its own files.
pub(super) struct Kept {
    files: AgentFiles,
    /// What is in the file.
    report: Report,
    failed: Option<Instant>,
    /// Why it could not be written, and why a pause could not be read. Each is told once, until it changes.
    report_problem: Option<String>,
    pause_problem: Option<String>,
}

impl Kept {
    /// What an earlier agent left. What cannot be read is told, and begins anew: better a backup too many.
    pub(super) fn read(files: AgentFiles, output: &Output) -> Self {
        let report = files.report().unwrap_or_else(|error| {
            let why = sentence(&error.into());
            output.note(format_args!("{why}. Each set counts as one that was never backed up"));
            AgentFiles::new_report()
        });
        Self { files, report, failed: None, report_problem: None, pause_problem: None }
    }

    pub(super) fn files(&self) -> &AgentFiles {
        &self.files
    }

    pub(super) fn report(&self) -> &Report {
        &self.report
    }

    /// The pause. One that cannot be read is none: better a backup too many.
    pub(super) fn pause(&mut self, output: &Output) -> Option<Pause> {
        let (pause, problem) = match self.files.pause() {
            Ok(pause) => (pause, None),
            Err(error) => {
                (None, Some(format!("{}. So there is no pause", sentence(&error.into()))))
            }
        };
        tell_change(output, &mut self.pause_problem, problem);
        pause
    }

    /// Writes another report, unless that failed just now; says whether it is written.
    fn write(&mut self, report: Report, output: &Output) -> bool {
        if self.failed.is_some_and(|failed| failed.elapsed() < AGAIN) {
            return false;
        }
        let written = self.files.write_report(&report);
        self.failed = written.is_err().then(Instant::now);
        let problem = written
            .err()
            .map(|error| format!("the agent's state is not kept: {}", sentence(&error.into())));
        tell_change(output, &mut self.report_problem, problem);
        if self.failed.is_none() {
            self.report = report;
        }
        self.failed.is_none()
    }

    /// In how many time what could not be written is written again.
    pub(super) fn again_in(&self) -> Option<Duration> {
        Some(AGAIN.saturating_sub(self.failed?.elapsed()))
    }
}

/// Notes a problem, unless it is the one that was noted last.
fn tell_change(output: &Output, told: &mut Option<String>, problem: Option<String>) {
    if *told != problem {
        problem.iter().for_each(|problem| output.note(problem));
        *told = problem;
    }
}

impl Agent<'_> {
    /// Keeps what is known and planned, for the next start and for `holdall agent status`.
    pub(super) fn keep_report(&mut self) {
        let report = Report {
            state: self.scheduler.state().clone(),
            conditions: self.scheduler.conditions().clone(),
            outlook: self.scheduler.outlook(now()),
            settings_problem: self.settings_problem.clone(),
            walks: self.journal.as_ref().map(Journal::walks).unwrap_or_default(),
        };
        if report != *self.kept.report() && self.kept.write(report, &self.app.output) {
            // If nobody reads that any more, backups go on.
            let _ = self.app.output.object("agent_outlook", &Seen::of(self.kept.report()));
        }
    }
}

/// What programs get whenever it changes.
#[derive(Serialize)]
struct Seen<'a> {
    conditions: &'a Conditions,
    sets: &'a [Outlook],
}

impl<'a> Seen<'a> {
    fn of(report: &'a Report) -> Self {
        Self { conditions: &report.conditions, sets: &report.outlook }
    }
}
