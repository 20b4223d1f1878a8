//! `holdall admin lab`.

use std::path::Path;

use anyhow::Result;
use clap::Subcommand;
use holdall_lab::Measurement;
use holdall_lab::report::{Form, Report};
use holdall_server::admin::{LabEntry, LabTest, ListLab, MeasureLab, ShowLab};
use serde::Serialize;

use super::ask;
use crate::app::App;
use crate::commands::lab::compare;
use crate::exit::Exit;
use crate::terminal::output::{Shown, local_time_of};

/// Measures the disk that a server's repositories lie on, and shows what was measured
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin lab                 (lists the reports)
         holdall admin lab disk
         holdall admin lab files --long
         holdall admin lab show 3
         holdall admin lab compare 3 4

The running server measures, as a job: `holdall admin jobs` shows and cancels it. It writes at most 537 MB, a tenth of \
what is free, beside the repositories, and removes it. It is not begun while a machine stores or reads, and ends when one \
begins. The last 100 reports are kept in the data folder.

Exit codes: 0 done, 1 failed, 2 wrong usage")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Measures the disk: reads, writes and fsyncs
    #[command(
        after_help = "Example: holdall admin lab disk\n\nExit codes: 0 done, 1 failed, 2 wrong usage"
    )]
    Disk(How),
    /// Measures what the file system does with many small files
    #[command(
        after_help = "Example: holdall admin lab files --long\n\nExit codes: 0 done, 1 failed, 2 wrong usage"
    )]
    Files(How),
    /// Measures what the server's computer carries to itself, and tells what its links negotiated
    #[command(
        after_help = "Example: holdall admin lab net\n\nExit codes: 0 done, 1 failed, 2 wrong usage"
    )]
    Net(How),
    /// Shows a report
    #[command(
        after_help = "Example: holdall admin lab show 3\n\nExit codes: 0 done, 1 failed, 2 wrong usage"
    )]
    Show {
        /// What it is called
        number: u64,
    },
    /// Puts two reports beside each other
    #[command(
        after_help = "Example: holdall admin lab compare 3 4\n\nExit codes: 0 done, 1 failed, 2 wrong usage"
    )]
    Compare {
        /// What the one is called
        first: u64,
        /// What the other is called
        second: u64,
    },
}

#[derive(Debug, clap::Args)]
struct How {
    /// For one to three minutes, and not for some seconds
    #[arg(long)]
    long: bool,
}

pub(crate) fn run(args: &Args, data: &Path, app: &App) -> Result<Exit> {
    match &args.verb {
        None => {
            let reports = ask(data, &ListLab {})?.reports;
            if reports.is_empty() {
                app.output.say("nothing was measured yet; `holdall admin lab disk` does")?;
            }
            reports.iter().try_for_each(|entry| list(app, entry))?;
        }
        Some(Verb::Disk(how)) => measure(data, app, LabTest::Disk, how.long)?,
        Some(Verb::Files(how)) => measure(data, app, LabTest::Files, how.long)?,
        Some(Verb::Net(how)) => measure(data, app, LabTest::Net, how.long)?,
        Some(Verb::Show { number }) => show(app, &ask(data, &ShowLab { number: *number })?.report)?,
        Some(Verb::Compare { first, second }) => {
            let report =
                |number: u64| Ok::<_, anyhow::Error>(ask(data, &ShowLab { number })?.report);
            let [one, other] = [report(*first)?, report(*second)?];
            let [first, second] = [first.to_string(), second.to_string()];
            return compare::tell([(&first, &one), (&second, &other)], app);
        }
    }
    Ok(Exit::Done)
}

fn measure(data: &Path, app: &App, test: LabTest, long: bool) -> Result<()> {
    let entry = ask(data, &MeasureLab { test, long })?;
    list(app, &entry)?;
    let report = ask(data, &ShowLab { number: entry.number })?.report;
    show(app, &report)
}

fn list(app: &App, entry: &LabEntry) -> Result<()> {
    #[derive(Serialize)]
    struct JsonEntry<'a> {
        number: u64,
        command: &'a str,
        made: &'a str,
    }
    let LabEntry { number, command, made } = entry;
    app.output.object("server_lab_report", &JsonEntry { number: *number, command, made })?;
    let shown = |text: &str| Shown(text.as_bytes()).to_string();
    let time = shown(&local_time_of(made));
    Ok(app.output.result(format_args!("{number:>4}  {time}  {}", shown(command)))?)
}

fn show(app: &App, report: &Report) -> Result<()> {
    for row in &report.measurements {
        // What a row of files was done to is told by kind, which a report does not keep.
        app.output.object("measurement", &Measurement { items: None, ..row.clone() })?;
    }
    let mut card = report.clone();
    card.made = local_time_of(&report.made);
    card.write(Form::Text).lines().try_for_each(|line| Ok(app.output.say(line)?))
}
