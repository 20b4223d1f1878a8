//! The status in words, and as programs see it.

use anyhow::Result;
use holdall_diagnosis::runs::{RunNote, ago};
use holdall_protocol::Usage;
use serde::Serialize;

use super::{Attempt, Status};
use crate::app::App;
use crate::commands::kit_trial;
use crate::deletions;
use crate::exit::Exit;
use crate::terminal::output::{count, counted, local_time, rfc3339, size};

/// Tells it; with whether the last good backup is too old, if that was asked.
pub(super) fn tell(app: &App, status: &Status, is_too_old: Option<bool>) -> Result<()> {
    app.output.object("summary", &JsonStatus::new(status, is_too_old))?;
    let mut lines = Lines::default();
    lines.add("repository", status.place.clone());
    lines.add("last good backup", last_good(status, is_too_old));
    for (failed, good) in &status.failing {
        if Some(good) != status.last_good.as_ref() {
            let sources = good.sources.join(", ");
            lines.add("failing", format!("{sources}: last good {}", at(status, good.last_ns())));
            let failed = Attempt { note: failed.clone(), goes_on: false };
            lines.add("", in_words(status, &failed));
        }
    }
    for attempt in [("last attempt", &status.last_attempt), ("last failure", &status.last_failure)]
    {
        if let (what, Some(attempt)) = attempt
            && Some(&attempt.note) != status.last_good.as_ref()
            && !lines.has(&in_words(status, attempt))
        {
            lines.add(what, in_words(status, attempt));
        }
    }
    let not_backed_up = status.last_good.as_ref().and_then(|good| good.end.as_ref());
    for problem in not_backed_up.iter().flat_map(|end| &end.first_problems) {
        lines.add("not backed up", problem.clone());
    }
    for left in not_backed_up.iter().flat_map(|end| &end.left_out) {
        lines.add("left out", left.clone());
    }
    lines.add("next backup", next_run(status));
    repository(status, &mut lines);
    let never = || "never, as far as this computer knows: `holdall check`".to_owned();
    lines.add(
        "last check",
        status.last_check.as_ref().map_or_else(never, |check| in_words(status, check)),
    );
    lines.add("recovery kit", kit_trial::in_words(status.kit_tried_ns, status.now_ns));
    for sentence in &status.unreadable {
        lines.add("unreadable", sentence.clone());
    }
    Ok(lines
        .0
        .iter()
        .try_for_each(|(what, line)| app.output.result_beside(&format!("{what:<17}"), line))?)
}

/// Lines, each with what it is about.
#[derive(Default)]
struct Lines(Vec<(&'static str, String)>);

impl Lines {
    fn add(&mut self, what: &'static str, line: String) {
        let is_same =
            self.0.iter().rev().find(|(of, _)| !of.is_empty()).is_some_and(|(of, _)| *of == what);
        self.0.push((if is_same { "" } else { what }, line));
    }

    fn has(&self, line: &str) -> bool {
        self.0.iter().any(|(_, other)| other == line)
    }
}

fn at(status: &Status, then_ns: i64) -> String {
    format!("{}, {}", local_time(then_ns), ago(status.seconds_since(then_ns)))
}

fn last_good(status: &Status, is_too_old: Option<bool>) -> String {
    let too_old = if is_too_old == Some(true) { " (too old)" } else { "" };
    let Some(good) = &status.last_good else {
        return status.last_receipt_ns.map_or_else(
            || format!("none, as far as this computer knows{too_old}"),
            |received_ns| format!("{}{too_old}, by its receipt", at(status, received_ns)),
        );
    };
    let mut line = format!("{}{too_old}", at(status, good.last_ns()));
    if let Some(end) = &good.end {
        let id = end.snapshot.as_deref().and_then(|id| id.get(..10)).unwrap_or_default();
        line += &format!(": snapshot {id}, {}, {}", counted(end.items, "item"), size(end.bytes));
        if end.problems > 0 {
            line += &format!("; {} could not be read, or need a look", count(end.problems));
        }
    }
    line
}

/// A run in words.
fn in_words(status: &Status, attempt: &Attempt) -> String {
    let when = at(status, attempt.note.started_ns);
    let Some(end) = &attempt.note.end else {
        let what = if attempt.goes_on {
            "goes on"
        } else {
            "did not end: it was killed, or the power failed"
        };
        return format!("{when}: {what}");
    };
    let cause = end.cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default();
    match end.exit_code {
        0 => format!("{when}: done{cause}"),
        3 => format!("{when}: done, but not everything could be read{cause}"),
        130 => format!("{when}: interrupted"),
        code => format!("{when}: failed ({code}){cause}"),
    }
}

fn next_run(status: &Status) -> String {
    status.next_run.as_ref().map_or_else(
        || "not known: no timer of systemd is there for it".to_owned(),
        |next| format!("{} ({})", local_time(next.at_ns), next.by),
    )
}

/// What the repository said, or that it is away.
fn repository(status: &Status, lines: &mut Lines) {
    let answer = match &status.seen {
        Ok(answer) => answer,
        Err(reason) => {
            lines.add("room", format!("not known: {reason}"));
            return lines.add("deletions", "not known".to_owned());
        }
    };
    let (usage, announced) = (&answer.usage, &answer.announced);
    let quota = usage.quota_bytes.map(|quota| format!(" of {}", size(quota))).unwrap_or_default();
    let stored = size(usage.stored_bytes);
    lines.add("room", format!("{stored}{quota} stored{}", room_left(usage)));
    if announced.deletions.is_empty() && announced.fewer_kept_from_ns.is_none() {
        lines.add("deletions", "none wait".to_owned());
    }
    for deletion in &announced.deletions {
        lines.add("deletions", deletions::in_words(deletion));
    }
    if let Some(from_ns) = announced.fewer_kept_from_ns {
        lines.add("deletions", deletions::fewer_kept(from_ns));
    }
}

/// How much room is left, as the end of a sentence; nothing where that is not known.
fn room_left(usage: &Usage) -> String {
    match usage.free_bytes {
        None => String::new(),
        Some(0) if usage.quota_bytes.is_some_and(|quota| quota <= usage.stored_bytes) => {
            ", no room for more".to_owned()
        }
        // The free room of a disk is rounded.
        Some(0) => ", room for less than 100 MB more".to_owned(),
        Some(free) => format!(", room for {} more", size(free)),
    }
}

/// A run as programs see it.
#[derive(Serialize)]
struct JsonRun<'a> {
    started: String,
    ended: Option<String>,
    /// `done`, `incomplete`, `failed`, `running` or `killed`.
    result: &'static str,
    exit_code: Option<u8>,
    cause: Option<&'a str>,
    sources: &'a [String],
    snapshot_id: Option<&'a str>,
    items: u64,
    bytes: u64,
    errors: u64,
    problems: &'a [String],
    left_out: &'a [String],
}

impl<'a> JsonRun<'a> {
    fn new(note: &'a RunNote, goes_on: bool) -> Self {
        let end = note.end.as_ref();
        let code = end.map(|end| end.exit_code);
        let result = match code {
            None if goes_on => "running",
            None => "killed",
            Some(0) => "done",
            Some(code) if code == Exit::Incomplete.code() => "incomplete",
            Some(_) => "failed",
        };
        Self {
            started: rfc3339(note.started_ns),
            ended: end.map(|end| rfc3339(end.ended_ns)),
            result,
            exit_code: code,
            cause: end.and_then(|end| end.cause.as_deref()),
            sources: &note.sources,
            snapshot_id: end.and_then(|end| end.snapshot.as_deref()),
            items: end.map_or(0, |end| end.items),
            bytes: end.map_or(0, |end| end.bytes),
            errors: end.map_or(0, |end| end.problems),
            problems: end.map_or(&[], |end| &end.first_problems),
            left_out: end.map_or(&[], |end| &end.left_out),
        }
    }

    fn of(attempt: &'a Attempt) -> Self {
        Self::new(&attempt.note, attempt.goes_on)
    }
}

/// Sources whose backup fails, as programs see them.
#[derive(Serialize)]
struct JsonFailing<'a> {
    last_attempt: JsonRun<'a>,
    last_good: JsonRun<'a>,
}

impl<'a> JsonFailing<'a> {
    fn new((failed, good): &'a (RunNote, RunNote)) -> Self {
        Self { last_attempt: JsonRun::new(failed, false), last_good: JsonRun::new(good, false) }
    }
}

/// A deletion that waits, as programs see it.
#[derive(Serialize)]
struct JsonWaiting {
    number: u64,
    snapshots: usize,
    /// Whether the repository goes as a whole.
    whole: bool,
    due: String,
}

/// The status as programs see it.
#[derive(Serialize)]
struct JsonStatus<'a> {
    place: &'a str,
    last_good: Option<JsonRun<'a>>,
    /// What was backed up before and fails now: the newest run of those sources, and the newest good one.
    failing: Vec<JsonFailing<'a>>,
    /// When the last good backup ended; how old it is, or the oldest of those that fail now.
    last_good_time: Option<String>,
    age_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    too_old: Option<bool>,
    last_attempt: Option<JsonRun<'a>>,
    last_failure: Option<JsonRun<'a>>,
    last_check: Option<JsonRun<'a>>,
    kit_tried: Option<String>,
    next_run: Option<String>,
    /// Whether the repository answered; what follows is null if not.
    reachable: bool,
    unreachable_because: Option<&'a str>,
    stored_bytes: Option<u64>,
    quota_bytes: Option<u64>,
    free_bytes: Option<u64>,
    waiting_deletions: Option<Vec<JsonWaiting>>,
    fewer_kept_from: Option<String>,
    unreadable: &'a [String],
}

impl<'a> JsonStatus<'a> {
    fn new(status: &'a Status, too_old: Option<bool>) -> Self {
        let answer = status.seen.as_ref().ok();
        let waiting = |deletion: &holdall_protocol::WaitingDeletion| JsonWaiting {
            number: deletion.number,
            snapshots: deletion.snapshots.len(),
            whole: deletion.whole,
            due: rfc3339(deletion.due_ns),
        };
        let of = |attempt: &'a Option<Attempt>| attempt.as_ref().map(JsonRun::of);
        Self {
            place: &status.place,
            last_good: status.last_good.as_ref().map(|note| JsonRun::new(note, false)),
            failing: status.failing.iter().map(JsonFailing::new).collect(),
            last_good_time: status.last_good_ns().map(rfc3339),
            age_seconds: status.age_seconds(),
            too_old,
            last_attempt: of(&status.last_attempt),
            last_failure: of(&status.last_failure),
            last_check: of(&status.last_check),
            kit_tried: status.kit_tried_ns.map(rfc3339),
            next_run: status.next_run.as_ref().map(|next| rfc3339(next.at_ns)),
            reachable: answer.is_some(),
            unreachable_because: status.seen.as_ref().err().map(String::as_str),
            stored_bytes: answer.map(|answer| answer.usage.stored_bytes),
            quota_bytes: answer.and_then(|answer| answer.usage.quota_bytes),
            free_bytes: answer.and_then(|answer| answer.usage.free_bytes),
            waiting_deletions: answer
                .map(|answer| answer.announced.deletions.iter().map(waiting).collect()),
            fewer_kept_from: answer
                .and_then(|answer| answer.announced.fewer_kept_from_ns)
                .map(rfc3339),
            unreadable: &status.unreadable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_that_is_told_in_steps_is_not_nothing() {
        let usage = |free_bytes, quota_bytes| Usage {
            stored_bytes: 10,
            free_bytes,
            quota_bytes,
            ..Usage::default()
        };
        assert_eq!(room_left(&usage(Some(0), None)), ", room for less than 100 MB more");
        assert_eq!(room_left(&usage(Some(0), Some(10))), ", no room for more");
        assert_eq!(room_left(&usage(Some(2_000_000), Some(20))), ", room for 2.0 MB more");
        assert_eq!(room_left(&usage(None, None)), "");
    }
}
