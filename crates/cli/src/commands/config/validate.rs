//! `holdall config validate`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use holdall_agent::Schedule;
use holdall_format::OneLine;
use holdall_sys::{Clock, SystemClock};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::app::App;
use crate::commands::set_backup::{self, BadOption};
use crate::config::{Document, FILE, Folders, Set, Settings, Wrong};
use crate::exit::{Exit, Refusal};
use crate::opening::open::Where;
use crate::terminal::output::{counted, to_stderr};

/// Checks config.toml, and says what is wrong by line and key
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall config validate

A key that nobody knows is told with the one that may be meant. Nothing is opened, and no command is run.

Exit codes: 0 it is right, or not there, 1 it cannot be read, 2 something in it is wrong, or wrong usage")]
pub(crate) struct Args {
    /// Another file than config.toml
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// What is told of a file.
#[derive(Serialize)]
struct Validity<'a> {
    file: String,
    is_valid: bool,
    problems: &'a [Wrong],
    repositories: usize,
    sets: usize,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    let file = match &args.file {
        Some(file) => file.clone(),
        None => Folders::from_environment()?.config.join(FILE),
    };
    let text = Settings::text(&file)?;
    if text.is_none() && args.file.is_some() {
        let message = format!("{} is not there", file.display());
        return Err(Refusal::new(Exit::Failed, message).hint("is the name right?").into());
    }
    let (settings, problems) = checked(text.as_deref().unwrap_or_default())?;
    let validity = Validity {
        file: file.display().to_string(),
        is_valid: problems.is_empty(),
        problems: &problems,
        repositories: settings.repositories.len(),
        sets: settings.sets.len(),
    };
    app.output.object("validity", &validity)?;
    tell(app, &file, text.is_some(), &validity)?;
    Ok(if validity.is_valid { Exit::Done } else { Exit::Usage })
}

fn tell(app: &App, file: &Path, is_there: bool, validity: &Validity<'_>) -> Result<()> {
    let file = file.display();
    if !app.output.json {
        validity.problems.iter().for_each(|wrong| {
            to_stderr(format_args!("error: {}", OneLine(format_args!("{file}: {wrong}"))))
        });
    }
    if validity.is_valid {
        let [repositories, sets] =
            [(validity.repositories, "named repository"), (validity.sets, "set")]
                .map(|(number, what)| counted(number as u64, what));
        match is_there {
            true => app.output.say(format_args!("{file} is right: {repositories}, {sets}"))?,
            false => app.output.say(format_args!("{file} is not there: nothing is set"))?,
        }
    }
    Ok(())
}

/// Why a set would never be backed up again by itself, though its schedule can be understood.
fn is_over(set: &Set) -> Option<String> {
    let schedule: Schedule = set.schedule.as_deref()?.parse().ok()?;
    let now = Timestamp::from_nanosecond(SystemClock.now_ns().into()).ok()?;
    let is_over = schedule.is_over(now, &TimeZone::system());
    is_over.then(|| {
        let meant = "`never` is for a set that you start yourself";
        format!("`{schedule}` names no moment to come; {meant}")
    })
}

/// What a text says, and all that is wrong with it; of a text that is no configuration, the first thing that is.
fn checked(text: &str) -> Result<(Settings, Vec<Wrong>)> {
    let settings = match Settings::parse(text) {
        Ok(settings) => settings.below_home()?,
        Err(wrong) => return Ok((Settings::default(), vec![wrong])),
    };
    let document = Document::parse(text).context("it was read before")?;
    let wrong = |key: String, reason: String| Wrong { line: document.line_of(&key), key, reason };
    let mut problems = settings.problems(text);
    let places = settings
        .repositories
        .iter()
        .map(|(name, named)| (format!("repositories.{name}.repository"), &named.repository));
    let default = settings.repository.iter().map(|place| ("repository".to_owned(), place));
    for (key, place) in default.chain(places) {
        if let Err(refusal) = Where::parse(place) {
            problems.push(wrong(key, refusal.message));
        }
    }
    for (name, set) in settings.sets.iter().filter(|(_, set)| set.source().is_ok()) {
        let parsed = set_backup::parse(set).and_then(|backup| set_backup::check_patterns(&backup));
        if let Err(BadOption { key, reason }) = parsed {
            let key = format!("sets.{name}.{key}");
            problems.push(wrong(key.trim_end_matches('.').to_owned(), reason));
        }
        if let Some(reason) = is_over(set) {
            problems.push(wrong(format!("sets.{name}.schedule"), reason));
        }
    }
    problems.sort_by_key(|wrong| wrong.line);
    Ok((settings, problems))
}
