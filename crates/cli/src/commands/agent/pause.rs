//! `holdall agent pause`.

use std::time::Duration;

use anyhow::Result;
use holdall_agent::Pause;
use holdall_state::AgentFiles;
use holdall_sys::{Clock, SystemClock};
use jiff::Timestamp;
use serde::Serialize;

use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::opening::connection::parse_age;
use crate::terminal::output::local_time;

/// Has the agent back nothing up for a while
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples: holdall agent pause 2h
          holdall agent pause        (until `holdall agent resume`)

A backup that goes on is stopped. What it sent is kept, and the next one goes on from there. The pause outlives the agent and \
the computer.

Exit codes: 0 done, 1 failed, 2 wrong usage")]
pub(crate) struct Args {
    /// For how long, such as 90m, 2h or 3d [default: until it is resumed]
    #[arg(value_name = "DURATION", value_parser = parse_age)]
    duration: Option<Duration>,
}

/// Whether the agent is paused from now on.
#[derive(Serialize)]
pub(super) struct Told {
    pub(super) is_paused: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) until: Option<Timestamp>,
}

pub(super) fn run(args: &Args, app: &App) -> Result<Exit> {
    let until = args.duration.map(until).transpose()?;
    AgentFiles::in_state(&app.folders.state).set_pause(Some(Pause { until }))?;
    app.output.object("agent_pause", &Told { is_paused: true, until })?;
    app.output.say(match until {
        Some(until) => format!("paused until {}", local_time(until.as_nanosecond())),
        None => "paused; `holdall agent resume` ends it".to_owned(),
    })?;
    Ok(Exit::Done)
}

fn until(duration: Duration) -> Result<Timestamp> {
    let refuse = |message: &str, hint: &'static str| Refusal::new(Exit::Usage, message).hint(hint);
    if duration.is_zero() {
        return Err(refuse("a pause of no time is none", "`holdall agent resume` ends one").into());
    }
    let now = Timestamp::from_nanosecond(SystemClock.now_ns().into())?;
    let hint = "without a duration, it lasts until `holdall agent resume`";
    now.checked_add(duration).map_err(|_| refuse("so long a pause has no end", hint).into())
}
