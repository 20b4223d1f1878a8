//! `holdall admin resume`.

use std::path::Path;

use anyhow::Result;
use holdall_server::admin::Resume;
use serde::Serialize;

use super::ask;
use crate::app::App;
use crate::exit::Exit;

/// Resumes retention rules after an alarm
///
/// An alarm stops a repository's rules from deleting anything. Its causes: a snapshot has less than half of what the
/// previous one held. A series got more than 100 snapshots within an hour. Unchanged rules would delete most of a
/// machine's snapshots at once. The rules are unknown, such as after the server's database was lost. Check the rules
/// first with `holdall admin retention`; setting them resumes, too.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin resume laptop

`holdall admin repositories` shows the alarm.

Exit codes: 0 done, 1 failed, 2 wrong usage")]
pub(crate) struct Args {
    /// The repository's name
    #[arg(value_name = "REPOSITORY")]
    repository: String,
}

pub(crate) fn run(args: &Args, data: &Path, app: &App) -> Result<Exit> {
    #[derive(Serialize)]
    struct JsonAlarm<'a> {
        repository: &'a str,
        alarm: Option<&'a str>,
    }
    let alarm = ask(data, &Resume { repository: args.repository.clone() })?.alarm;
    let object = JsonAlarm { repository: &args.repository, alarm: alarm.as_deref() };
    app.output.object("alarm", &object)?;
    app.output.result(match alarm {
        Some(alarm) => format!("{}: rules go on; the alarm was: {alarm}", args.repository),
        None => format!("{}: there was no alarm", args.repository),
    })?;
    Ok(Exit::Done)
}
