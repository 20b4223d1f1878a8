//! `holdall admin machines`, and how a machine is shown.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use holdall_server::Right;
use holdall_server::admin::{ListMachines, MachineEntry};
use holdall_sys::{Clock, SystemClock};
use serde::Serialize;

use super::runs::JsonRun;
use super::{ask, going_in_words};
use crate::app::App;
use crate::exit::Exit;
use crate::opening::connection::parse_duration;
use crate::terminal::output::{Shown, count, local_time, rfc3339};

/// Lists the machines that this server knows
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin machines --absent-for 7d     (those of which nothing was heard for a week)

When a machine was last seen is known to the minute. If its last backup failed, that stands below it.

Exit codes: 0 done, 1 failed, 2 wrong usage")]
pub(crate) struct Args {
    /// Lists those alone that asked for nothing for so long (such as 36h, 7d), and are not revoked
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    absent_for: Option<Duration>,
}

pub(crate) fn run(args: &Args, data: &Path, app: &App) -> Result<Exit> {
    let mut machines = ask(data, &ListMachines {})?.machines;
    if let Some(absent_for) = args.absent_for {
        let now_ns = SystemClock.now_ns();
        machines.retain(|machine| !machine.revoked && machine.is_absent(absent_for, now_ns));
        if machines.is_empty() {
            app.output.say("every machine was here since")?;
            return Ok(Exit::Done);
        }
    }
    if machines.is_empty() {
        app.output.say("no machines; `holdall invite` lets one in")?;
        return Ok(Exit::Done);
    }
    app.output.say(format_args!(
        "{:<12} {:<14} {:<14} {:<8} {:>4}  last seen",
        "id", "name", "repository", "right", "keys"
    ))?;
    machines.iter().try_for_each(|machine| show(app, machine))?;
    Ok(Exit::Done)
}

/// Shows a machine, as a line or as an object.
pub(super) fn show(app: &App, machine: &MachineEntry) -> Result<()> {
    app.output.object("machine", &JsonMachine::new(machine))?;
    app.output.result(format_args!(
        "{:<12} {:<14} {:<14} {:<8} {:>4}  {}",
        machine.id.get(..12).unwrap_or_default(),
        Shown(machine.name.as_bytes()).to_string(),
        machine.repository,
        if machine.revoked { "revoked".to_owned() } else { machine.right.to_string() },
        count(machine.keys as u64),
        machine.last_seen_ns.map_or_else(|| "never".to_owned(), local_time),
    ))?;
    if let Some(failed) = machine.last_run.as_ref().filter(|run| !run.is_good()) {
        app.output.result(format_args!(
            "{:<12} its last backup {}, {}",
            "",
            failed.outcome(),
            local_time(failed.received_ns)
        ))?;
    }
    if let Some(going) = machine.going {
        app.output.result(format_args!("{:<12} {}", "", going_in_words(going)))?;
    }
    Ok(())
}

/// A machine as programs see it.
#[derive(Serialize)]
struct JsonMachine<'a> {
    id: &'a str,
    name: &'a str,
    repository: &'a str,
    right: Right,
    created: String,
    keys: usize,
    revoked: bool,
    last_seen: Option<String>,
    removed_after: Option<String>,
    last_run: Option<JsonRun>,
}

impl<'a> JsonMachine<'a> {
    fn new(machine: &'a MachineEntry) -> Self {
        Self {
            id: &machine.id,
            name: &machine.name,
            repository: &machine.repository,
            right: machine.right,
            created: rfc3339(machine.created_ns),
            keys: machine.keys,
            revoked: machine.revoked,
            last_seen: machine.last_seen_ns.map(rfc3339),
            removed_after: machine.going.map(|going| rfc3339(going.due_ns)),
            last_run: machine.last_run.as_ref().map(JsonRun::new),
        }
    }
}
