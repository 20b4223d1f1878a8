//! The ladder as it is told: what each step can do, how much of it a backup used, and what follows from that.

use anyhow::Result;
use holdall_diagnosis::path::Climbed;
use holdall_lab::report::{Moment, Needs, Report, Rung};
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
        sentences: &'a [String],
        notes: &'a [String],
        verdict: &'a Option<Verdict>,
    }
    let Climbed { ladder, sentences, verdict, timeline } = climbed;
    let (told, moments) = (&verdict, &timeline);
    let summary =
        Summary { ladder: &ladder, timeline: moments, sentences: &sentences, notes, verdict: told };
    app.output.object("summary", &summary)?;
    tell(&app.output, &ladder)?;
    sentences.iter().try_for_each(|sentence| app.output.say(sentence))?;
    notes.iter().try_for_each(|note| app.output.say(format_args!("- {note}")))?;
    if let Some(words) = verdict.as_ref().and_then(Verdict::words) {
        app.output.say(words)?;
    }
    report.ladder = ladder;
    report.timeline = timeline;
    report.verdicts = verdict.into_iter().collect();
    report.answers = sentences;
    report.notes.extend(notes.iter().cloned());
    Ok(())
}

fn tell(output: &Output, ladder: &[Rung]) -> Result<()> {
    output.say("")?;
    let heads = ("the ladder", "MB/s", "", "items/s", "the backup");
    output.say(line(heads))?;
    for rung in ladder {
        let bytes = rung.bytes_per_second.map(|rate| figure(rate / 1e6)).unwrap_or_default();
        let items = rung.items_per_second.map(|rate| count(rate.round() as u64));
        let of = rung.needs.or(rung.reached.then_some(Needs::Plain)).map(Needs::bytes_in_words);
        let of = of.filter(|_| !bytes.is_empty()).unwrap_or_default();
        let behind = if rung.reached { "<".to_owned() } else { rung.beside().unwrap_or_default() };
        output.say(line((&rung.name, &bytes, of, &items.unwrap_or_default(), &behind)))?;
    }
    Ok(output.say("")?)
}

fn line((name, bytes, of, items, behind): (&str, &str, &str, &str, &str)) -> String {
    let line = format!("{name:<24} {bytes:>9} {of:<10} {items:>10}  {behind}");
    line.trim_end().to_owned()
}
