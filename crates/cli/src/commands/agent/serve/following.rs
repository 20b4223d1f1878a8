//! The agent and `config.toml`, which people write while it runs.

use holdall_agent::journal::WatchedSet;
use holdall_agent::{Notice, Plan};
use jiff::tz::TimeZone;

use super::{Agent, now};
use crate::commands::agent::plan;
use crate::config::{FILE, Settings};
use crate::exit::Refusal;
use crate::terminal::output::sentence;

impl Agent<'_> {
    /// Follows `config.toml`. While it makes no sense, nothing begins: each backup reads it, and would fail.
    pub(super) fn follow_settings(&mut self) {
        let file = self.app.folders.config.join(FILE);
        let read = Settings::text(&file);
        let is_being_written = matches!(&read, Ok(Some(text)) if text.is_empty());
        if is_being_written && !self.plan.sets.is_empty() {
            // Its end is noticed, too.
            return;
        }
        let settings = read.and_then(|text| match text {
            Some(text) => Settings::of_text(&file, &text),
            None => Ok(Settings::default()),
        });
        let planned = settings.and_then(|settings| {
            let plan = plan::of(&settings, self.app)?;
            Ok((plan, plan::watched(&settings)))
        });
        let problem = self.follow(planned);
        self.scheduler.settings_are(problem.is_none());
        if problem != self.settings_problem {
            match &problem {
                Some(problem) => self.tell(Notice::Settings { problem: problem.clone() }),
                None => self.app.output.note("config.toml is right again: backups go on"),
            }
            self.settings_problem = problem;
        }
    }

    /// Takes over what is planned; returns why there is nothing to take over.
    fn follow(&mut self, planned: Result<(Plan, Vec<WatchedSet>), Refusal>) -> Option<String> {
        let (plan, watched) = match planned {
            Ok(planned) => planned,
            Err(error) => return Some(sentence(&error.into())),
        };
        if watched != self.watched {
            self.journal.iter().for_each(|journal| journal.follow(watched.clone()));
            self.watched = watched;
        }
        if plan != self.plan {
            self.tell_of_those_over(&plan);
            self.scheduler.follow(plan.clone(), now());
            self.plan = plan;
        }
        None
    }

    /// Names the sets whose schedule has no moment that is still to come.
    fn tell_of_those_over(&self, plan: &Plan) {
        let zone = TimeZone::system();
        for set in plan.sets.iter().filter(|set| set.schedule.is_over(now(), &zone)) {
            let (name, schedule) = (&set.name, &set.schedule);
            self.app
                .output
                .note(format_args!("{name}: its schedule `{schedule}` names no moment to come"));
        }
    }
}
