//! `holdall admin runs`, and how a run is shown that a machine told of.

use std::path::Path;

use anyhow::Result;
use holdall_meter::{Layer, duration};
use holdall_server::admin::{ListRuns, RunEntry};
use serde::Serialize;

use super::ask;
use crate::app::App;
use crate::exit::Exit;
use crate::terminal::output::{count, local_time, rfc3339, size};

/// Lists how the last backups of a machine went, as it told
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin runs laptop

A machine tells it at the end of each backup that reaches the server, with items and bytes rounded up; an older holdall \
tells nothing. The last 200 are kept. After the outcome stands what held the backup back.

Exit codes: 0 done, 1 failed, 2 wrong usage")]
pub(crate) struct Args {
    /// The machine's name, its id, or the beginning of its id
    #[arg(value_name = "MACHINE")]
    machine: String,
}

pub(crate) fn run(args: &Args, data: &Path, app: &App) -> Result<Exit> {
    let runs = ask(data, &ListRuns { machine: args.machine.clone() })?.runs;
    if runs.is_empty() {
        app.output.say(format_args!("{} told of no backup", args.machine))?;
        return Ok(Exit::Done);
    }
    app.output.say(format_args!(
        "{:<20} {:>11} {:>9} {:>9}  outcome",
        "ended", "took", "items", "bytes"
    ))?;
    runs.iter().try_for_each(|run| show(app, run))?;
    Ok(Exit::Done)
}

fn show(app: &App, run: &RunEntry) -> Result<()> {
    app.output.object("run", &JsonRun::new(run))?;
    let report = &run.report;
    let limit = match report.limited_by {
        Layer::Nothing | Layer::Unsure => String::new(),
        layer => format!(", {layer}"),
    };
    Ok(app.output.result(format_args!(
        "{:<20} {:>11} {:>9} {:>9}  {}{limit}",
        local_time(run.received_ns),
        duration(report.milliseconds as f64 / 1e3),
        count(report.items),
        size(report.bytes),
        run.outcome(),
    ))?)
}

/// What a machine told of a run, as programs see it.
#[derive(Serialize)]
pub(super) struct JsonRun {
    received: String,
    exit_code: u8,
    seconds: f64,
    items: u64,
    bytes: u64,
    bytes_sent: u64,
    errors: u64,
    limited_by: Layer,
    usual_seconds: Option<f64>,
    next: Option<String>,
}

impl JsonRun {
    pub(super) fn new(run: &RunEntry) -> Self {
        let report = &run.report;
        let seconds = |milliseconds: u64| milliseconds as f64 / 1e3;
        Self {
            received: rfc3339(run.received_ns),
            exit_code: report.exit_code,
            seconds: seconds(report.milliseconds),
            items: report.items,
            bytes: report.bytes,
            bytes_sent: report.sent_bytes,
            errors: report.problems,
            limited_by: report.limited_by,
            usual_seconds: report.usual_milliseconds.map(seconds),
            next: report.next_ns.map(rfc3339),
        }
    }
}
