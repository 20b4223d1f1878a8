//! `holdall admin jobs`.

use std::path::Path;

use anyhow::Result;
use holdall_server::admin::{CancelJob, JobEntry, JobProgress, ListJobs, Outcome, ShowJob};
use serde::Serialize;

use super::ask;
use crate::app::App;
use crate::exit::Exit;
use crate::terminal::output::{Shown, local_time, rfc3339, size};

/// Shows what a server does that takes long, its log, and cancels it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin jobs                (what runs, and what ended last)
         holdall admin jobs 3              (with its log)
         holdall admin jobs 3 --cancel

Scrubs, prunes and the hourly round are jobs. What a job did before it was cancelled stays done. Jobs are remembered \
until the server ends.

Exit codes: 0 done, 1 failed, 2 wrong usage")]
pub(crate) struct Args {
    /// What the job is called; without one, all are listed
    number: Option<u64>,
    /// Has it end early
    #[arg(long, requires = "number")]
    cancel: bool,
}

pub(crate) fn run(args: &Args, data: &Path, app: &App) -> Result<Exit> {
    match args.number {
        Some(number) if args.cancel => show(app, &ask(data, &CancelJob { number })?)?,
        Some(number) => show(app, &ask(data, &ShowJob { number })?)?,
        None => {
            let jobs = ask(data, &ListJobs {})?.jobs;
            if jobs.is_empty() {
                app.output.say("no jobs since the server started")?;
            }
            jobs.iter().rev().try_for_each(|job| show(app, job))?;
        }
    }
    Ok(Exit::Done)
}

fn show(app: &App, job: &JobEntry) -> Result<()> {
    app.output.object("job", &JsonJob::of(job))?;
    let outcome = match job.outcome {
        Outcome::Running => "runs",
        Outcome::Done => "done",
        Outcome::Failed => "failed",
        Outcome::Cancelled => "cancelled",
    };
    let begun = local_time(job.begun_ns);
    app.output.result(format_args!(
        "{:>4}  {begun}  {outcome:<9} {}",
        job.number,
        Shown(job.what.as_bytes())
    ))?;
    if let (Some(now), Outcome::Running) = (job.progress, job.outcome) {
        let JobProgress { done_bytes, total_bytes, bytes_per_second } = now;
        let (done, total) = (size(done_bytes), size(total_bytes));
        app.output
            .result(format_args!("      {done} of {total}, {}/s", size(bytes_per_second as u64)))?;
    }
    if let Some(error) = &job.error {
        app.output.result(format_args!("      {}", Shown(error.as_bytes())))?;
    }
    job.lines.iter().try_for_each(|line| {
        let time = local_time(line.time_ns);
        Ok(app.output.result(format_args!("      {time} {}", Shown(line.text.as_bytes())))?)
    })
}

#[derive(Serialize)]
struct JsonJob<'a> {
    number: u64,
    what: &'a str,
    who: &'a str,
    begun: String,
    ended: Option<String>,
    outcome: Outcome,
    error: Option<&'a str>,
    done_bytes: Option<u64>,
    total_bytes: Option<u64>,
    lines: Vec<&'a str>,
}

impl<'a> JsonJob<'a> {
    fn of(job: &'a JobEntry) -> Self {
        Self {
            number: job.number,
            what: &job.what,
            who: &job.who,
            begun: rfc3339(job.begun_ns),
            ended: job.ended_ns.map(rfc3339),
            outcome: job.outcome,
            error: job.error.as_deref(),
            done_bytes: job.progress.map(|progress| progress.done_bytes),
            total_bytes: job.progress.map(|progress| progress.total_bytes),
            lines: job.lines.iter().map(|line| &*line.text).collect(),
        }
    }
}
