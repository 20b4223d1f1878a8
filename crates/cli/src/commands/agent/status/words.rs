//! The status in words.

use holdall_agent::{Cause, Outlook, Schedule, SetState};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{SetStatus, Status};
use crate::terminal::output::{counted, local_time};

/// The lines for people, each with what it is about.
pub(super) fn lines(status: &Status) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let mut add = |about: &str, line: String| lines.push((about.to_owned(), line));
    add(
        "agent",
        match &status.agent {
            Some(agent) => format!("runs ({agent})"),
            None => "does not run: `holdall agent` starts it, `holdall agent install` for good"
                .to_owned(),
        },
    );
    if let Some(pause) = &status.pause {
        add(
            "paused",
            match pause.until {
                Some(until) => format!("until {}", at(until)),
                None => "until `holdall agent resume`".to_owned(),
            },
        );
    }
    status.files_problems.iter().for_each(|problem| add("damaged", problem.clone()));
    match &status.settings_problem {
        Some(problem) => add("settings", format!("nothing is backed up: {problem}")),
        None if status.sets.is_empty() => {
            add("sets", "none: config.toml has no [sets.NAME]".to_owned());
        }
        None => {}
    }
    for SetStatus { outlook, kept, in_words, walk } in &status.sets {
        add(&outlook.set, last(kept));
        if kept.exit_code != Some(0) && kept.started.is_some() {
            add("", last_good(kept));
        }
        walk.iter().for_each(|walk| add("", walk.clone()));
        add("", in_words.clone());
    }
    lines
}

/// What comes next for a set, and what keeps it from beginning now.
pub(super) fn next(outlook: &Outlook, kept: &SetState, has_agent: bool, now: Timestamp) -> String {
    if outlook.is_running {
        let since = kept.started.map(|started| format!(", since {}", at(started)));
        return format!("is being backed up{}", since.unwrap_or_default());
    }
    let Some(next) = outlook.next else {
        let schedule = outlook.schedule.parse::<Schedule>();
        let is_over = schedule.is_ok_and(|schedule| schedule.is_over(now, &TimeZone::system()));
        return match has_agent {
            _ if is_over => format!(
                "is not backed up by itself: its schedule `{}` names no moment to come",
                outlook.schedule
            ),
            true => format!("is not backed up by itself: its schedule is `{}`", outlook.schedule),
            false => {
                format!("is not backed up by itself ({}): the agent does not run", outlook.schedule)
            }
        };
    };
    let why = match outlook.cause {
        Some(Cause::First) => "the first one".to_owned(),
        Some(Cause::Retry) => {
            format!("another attempt, after {}", counted(kept.failures.into(), "failure"))
        }
        _ if kept.stopped_by.is_some() => "the one that was stopped".to_owned(),
        _ => outlook.schedule.clone(),
    };
    match &outlook.hold {
        Some(hold) if next <= now => format!("due since {} ({why}), but {hold}", at(next)),
        Some(hold) => format!("next {} ({why}); it would wait now: {hold}", at(next)),
        None => format!("next {} ({why})", at(next)),
    }
}

/// How the last run ended.
fn last(kept: &SetState) -> String {
    let Some(started) = kept.started else { return "never backed up by the agent".to_owned() };
    let is_ended = kept.ended.is_some_and(|ended| ended >= started);
    let how = match (is_ended, kept.exit_code) {
        (false, _) => "has not ended".to_owned(),
        (true, Some(0)) => "done".to_owned(),
        (true, Some(3)) => "done, but not everything could be read".to_owned(),
        (true, Some(130)) => match &kept.stopped_by {
            Some(hold) => format!("stopped: {hold}"),
            None => "interrupted".to_owned(),
        },
        (true, Some(code)) => format!("failed ({code})"),
        (true, None) => "was killed".to_owned(),
    };
    let cause = kept.message.as_ref().filter(|_| is_ended && kept.exit_code != Some(130));
    format!(
        "last backup {}: {how}{}",
        at(started),
        cause.map(|cause| format!(": {cause}")).unwrap_or_default()
    )
}

fn last_good(kept: &SetState) -> String {
    kept.last_good.map_or_else(
        || "no good backup by the agent yet".to_owned(),
        |good| format!("last good backup {}", at(good)),
    )
}

fn at(moment: Timestamp) -> String {
    local_time(moment.as_nanosecond())
}
