//! The agent and `config.toml`, which people write while it runs.

use super::{Agent, now};
use crate::commands::agent::plan;
use crate::config::{FILE, Settings};
use crate::terminal::output::sentence;

impl Agent<'_> {
    /// Follows `config.toml`, or what it said before, if it makes no sense now.
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
        let plan = settings.and_then(|settings| {
            let plan = plan::of(&settings, self.app)?;
            Ok((plan, plan::watched(&settings)))
        });
        let problem = match plan {
            Ok((plan, watched)) => {
                if watched != self.watched {
                    self.journal.iter().for_each(|journal| journal.follow(watched.clone()));
                    self.watched = watched;
                }
                if plan != self.plan {
                    self.scheduler.follow(plan.clone(), now());
                    self.plan = plan;
                }
                None
            }
            Err(error) => Some(sentence(&error.into())),
        };
        if problem != self.settings_problem {
            problem.iter().for_each(|problem| {
                self.app
                    .output
                    .note(format_args!("{problem}; the agent goes on with the settings of before"));
            });
            self.settings_problem = problem;
        }
    }
}
