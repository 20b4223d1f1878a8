//! `holdall agent status`.

mod words;

use anyhow::Result;
use holdall_agent::{Conditions, Outlook, Pause, Plan, PlannedSet, SetState};
use holdall_state::{AgentFiles, StateError};
use holdall_sys::{Clock, SystemClock};
use jiff::Timestamp;
use serde::Serialize;

use super::plan;
use crate::app::App;
use crate::exit::Exit;
use crate::terminal::output::sentence;

/// Shows when each set was backed up last, when it is next, and why not now
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall agent status

It reads what the agent wrote of itself, and needs neither the agent nor a repository. `holdall status` tells more of the \
backups themselves.

Exit codes: 0 done, whatever there was to tell, 1 failed, 2 wrong usage")]
pub(crate) struct Args {}

pub(super) fn run(_: &Args, app: &App) -> Result<Exit> {
    let status = Status::of(app)?;
    app.output.object("agent_status", &status)?;
    if !app.output.json {
        words::lines(&status).into_iter().try_for_each(|(about, line)| {
            app.output.result_beside(&format!("{about:<17}"), line)
        })?;
    }
    Ok(Exit::Done)
}

/// All that there is to tell.
#[derive(Serialize)]
struct Status {
    /// Which process is the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pause: Option<Pause>,
    conditions: Conditions,
    sets: Vec<SetStatus>,
    /// What is wrong in `config.toml`, so that nothing is backed up.
    #[serde(skip_serializing_if = "Option::is_none")]
    settings_problem: Option<String>,
    /// Why files of the agent cannot be read. What is in them counts as not there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files_problems: Vec<String>,
}

/// What there is to tell of a set.
#[derive(Serialize)]
struct SetStatus {
    #[serde(flatten)]
    outlook: Outlook,
    #[serde(flatten)]
    kept: SetState,
    /// What comes next and why, in words.
    in_words: String,
    /// How its last run since the agent's start looked for changes, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    walk: Option<String>,
}

impl Status {
    fn of(app: &App) -> Result<Self> {
        let files = AgentFiles::in_state(&app.folders.state);
        let mut files_problems = Vec::new();
        let mut told = |error: StateError| files_problems.push(sentence(&error.into()));
        let report = files.report().map_err(&mut told).unwrap_or_default();
        let pause = files.pause().map_err(&mut told).unwrap_or_default();
        let agent = files.agent();
        let settings_problem = app.damaged_settings().map(str::to_owned);
        let now = Timestamp::from_nanosecond(SystemClock.now_ns().into())?;
        let outlook = match agent {
            Some(_) => report.outlook.clone(),
            None => without_agent(&plan::of(app.settings(), app)?),
        };
        let set = |outlook: Outlook| {
            let kept = report.state.sets.get(&outlook.set).cloned().unwrap_or_default();
            let in_words = words::next(&outlook, &kept, agent.is_some(), now);
            let walk = report.walks.get(&outlook.set).cloned();
            SetStatus { outlook, kept, in_words, walk }
        };
        let pause = pause.filter(|pause| pause.until.is_none_or(|until| until > now));
        // One that an agent left when it ended says nothing of the file as it is now.
        let of_agent = report.settings_problem.filter(|_| agent.is_some());
        let settings_problem = settings_problem.or(of_agent);
        Ok(Self {
            sets: outlook.into_iter().map(set).collect(),
            agent,
            pause,
            conditions: report.conditions,
            settings_problem,
            files_problems,
        })
    }
}

/// Nothing comes next for any set.
fn without_agent(plan: &Plan) -> Vec<Outlook> {
    let outlook = |set: &PlannedSet| Outlook {
        set: set.name.clone(),
        schedule: set.schedule.to_string(),
        ..Outlook::default()
    };
    plan.sets.iter().map(outlook).collect()
}
