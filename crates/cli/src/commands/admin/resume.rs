//! `holdall admin resume`.

use std::path::Path;

use anyhow::Result;
use holdall_server::admin::Resume;
use serde::Serialize;

use super::ask;
use crate::app::App;
use crate::exit::Exit;

/// Has the rules for keeping go on after an alarm
///
/// A server's rules delete nothing after one of these: a snapshot has less than half of what the one before held; a
/// series got more than 100 snapshots within an hour; the same rules as before would delete most of a machine's
/// snapshots at once; the repository's rules are not known, as after the server's database was lost. Look at the
/// rules first with `holdall admin retention`, or set them, which resumes too. This says that all is right.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin resume laptop

`holdall admin repositories` tells the alarm.

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
