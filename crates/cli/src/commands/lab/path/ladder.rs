//! The ladder as it is told: what each step can do, how much of it a backup used, and what follows from that.

use anyhow::Result;
use holdall_diagnosis::path::Climbed;
use holdall_lab::report::{Moment, Report, Rung};
use holdall_meter::Verdict;
use serde::Serialize;

use super::super::table::figure;
use crate::app::App;
use crate::terminal::output::{Output, count};

/// Tells the ladder, the verdict and what would help, and puts them into the report.
///
/// # Errors
/// If standard output cannot be written.
pub(super) fn conclude(
    climbed: Climbed,
    app: &App,
    notes: &[String],
    report: &mut Report,
) -> Result<()> {
    #[derive(Serialize)]
    struct Summary<'a> {
        ladder: &'a [Rung],
        timeline: &'a [Moment],
        notes: &'a [String],
        verdict: &'a Option<Verdict>,
    }
    let Climbed { ladder, verdict, timeline } = climbed;
    let summary = Summary { ladder: &ladder, timeline: &timeline, notes, verdict: &verdict };
    app.output.object("summary", &summary)?;
    tell(&app.output, &ladder)?;
    for note in notes {
        app.output.say(format_args!("- {note}"))?;
    }
    if let Some(words) = verdict.as_ref().and_then(Verdict::words) {
        app.output.say(words)?;
    }
    report.ladder = ladder;
    report.timeline = timeline;
    report.verdicts = verdict.into_iter().collect();
    report.notes.extend(notes.iter().cloned());
    Ok(())
}

fn tell(output: &Output, ladder: &[Rung]) -> Result<()> {
    output.say("")?;
    output
        .say(format_args!("{:<24} {:>12} {:>12}  the backup", "the ladder", "MB/s", "items/s"))?;
    for rung in ladder {
        let bytes = rung.bytes_per_second.map(|rate| figure(rate / 1e6));
        let items = rung.items_per_second.map(|rate| count(rate.round() as u64));
        let used = rung.used.map(|used| format!("{:.0} % of it", used * 100.0));
        let behind = if rung.reached { "<".to_owned() } else { used.unwrap_or_default() };
        let [bytes, items] = [bytes, items].map(Option::unwrap_or_default);
        let line = format!("{:<24} {bytes:>12} {items:>12}  {behind}", rung.name);
        output.say(line.trim_end())?;
    }
    Ok(output.say("")?)
}
