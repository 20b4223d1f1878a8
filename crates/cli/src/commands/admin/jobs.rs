//! `holdall admin jobs`.

use std::path::Path;

use anyhow::Result;
use holdall_meter::duration;
use holdall_server::admin::{
    CancelJob, EndSession, JobEntry, JobProgress, ListJobs, ListSessions, Outcome, SessionEntry,
    ShowJob,
};
use serde::Serialize;

use super::ask;
use crate::app::App;
use crate::exit::Exit;
use crate::terminal::output::{Shown, local_time, rfc3339, size};

/// Shows what a server does that takes long and what machines do there now, and ends it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin jobs                (what runs, and what ended last)
         holdall admin jobs 3              (with its log)
         holdall admin jobs 3 --cancel
         holdall admin jobs --end-session 7

Scrubs, prunes, tests of the lab and the hourly round are jobs. What a job did before it was cancelled stays done. Jobs are remembered \
until the server ends. A session is what a machine does there now; its run ends with 1 when the session is ended, and \
what it stored by then stays.

Exit codes: 0 done, 1 failed, 2 wrong usage")]
pub(crate) struct Args {
    /// What the job is called; without one, all are listed
    number: Option<u64>,
    /// Has it end early
    #[arg(long, requires = "number")]
    cancel: bool,
    /// Has what a machine does there end
    #[arg(long, value_name = "NUMBER", conflicts_with = "number")]
    end_session: Option<u64>,
}

pub(crate) fn run(args: &Args, data: &Path, app: &App) -> Result<Exit> {
    if let Some(number) = args.end_session {
        show_session(app, &ask(data, &EndSession { number })?)?;
        return Ok(Exit::Done);
    }
    match args.number {
        Some(number) if args.cancel => show(app, &ask(data, &CancelJob { number })?)?,
        Some(number) => show(app, &ask(data, &ShowJob { number })?)?,
        None => {
            let jobs = ask(data, &ListJobs {})?.jobs;
            if jobs.is_empty() {
                app.output.say("no jobs since the server started")?;
            }
            jobs.iter().rev().try_for_each(|job| show(app, job))?;
            let sessions = ask(data, &ListSessions {})?.sessions;
            sessions.iter().try_for_each(|session| show_session(app, session))?;
        }
    }
    Ok(Exit::Done)
}

fn show_session(app: &App, session: &SessionEntry) -> Result<()> {
    app.output.object("session", session)?;
    let SessionEntry { number, who, taken_bytes, given_bytes, seconds, .. } = session;
    let (bytes, what) =
        if *given_bytes > *taken_bytes { (given_bytes, "read") } else { (taken_bytes, "stored") };
    let (who, bytes, took) = (Shown(who.as_bytes()), size(*bytes), duration(*seconds));
    Ok(app.output.result(format_args!("session {number}: {who}, {bytes} {what} in {took}"))?)
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
    if let (Some(steps), Outcome::Running) = (job.steps, job.outcome) {
        app.output.result(format_args!("      {} of {} steps", steps.done, steps.total))?;
    }
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
    done_steps: Option<usize>,
    total_steps: Option<usize>,
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
            done_steps: job.steps.map(|steps| steps.done),
            total_steps: job.steps.map(|steps| steps.total),
            lines: job.lines.iter().map(|line| &*line.text).collect(),
        }
    }
}
