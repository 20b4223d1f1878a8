//! The rows of `lab path`, as they are measured.

use std::io;

use holdall_diagnosis::path::{Ran, Telling};
use holdall_lab::Measurement;
use holdall_lab::disk::Cache;
use holdall_meter::Layer;
use serde::Serialize;

use super::super::rate::Slowest;
use super::super::table::{figure, latency, latency_heads, megabytes, operations, tell_named};
use crate::app::App;
use crate::exit::Exit;
use crate::terminal::output::{counted, size};

/// What a row is told as.
#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    measurement: &'a Measurement,
    #[serde(skip_serializing_if = "Option::is_none")]
    stored_bytes: Option<u64>,
}

/// The width of the names' column.
const NAME_COLUMNS: usize = 36;

/// What was told.
pub(super) struct Told<'a> {
    app: &'a App,
    slowest: Slowest,
    notes: Vec<String>,
    has_heads: bool,
}

impl<'a> Told<'a> {
    /// Nothing yet.
    pub(super) fn new(app: &'a App) -> Self {
        Self { app, slowest: Slowest::default(), notes: Vec::new(), has_heads: false }
    }

    /// All sentences.
    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// All rows.
    pub(super) fn rows(&self) -> &[Measurement] {
        self.slowest.rows()
    }

    /// How the command ends.
    pub(super) fn exit(&self, limit: Option<u64>) -> Exit {
        self.slowest.exit(limit)
    }

    fn tell(&mut self, row: &Row<'_>, how: &str) -> io::Result<()> {
        let output = &self.app.output;
        if !std::mem::replace(&mut self.has_heads, true) {
            let heads = latency_heads();
            output.say(format_args!(
                "{:<NAME_COLUMNS$} {:>9} {:>10} {heads}",
                "", "MB/s", "items/s"
            ))?;
        }
        let measurement = row.measurement;
        output.object("measurement", row)?;
        let seconds = figure(measurement.duration_seconds);
        let jobs = measurement.jobs.filter(|&jobs| jobs > 1).map(|jobs| format!(" x{jobs}"));
        let what = measurement.operation.clone() + &jobs.unwrap_or_default();
        let figures = format!(
            "{:>9} {:>10} {}",
            megabytes(measurement),
            operations(measurement),
            latency(measurement),
        );
        let more = [format!("{seconds} s"), how.to_owned()];
        let more: Vec<_> = more.into_iter().filter(|part| !part.is_empty()).collect();
        tell_named(output, (&what, NAME_COLUMNS), &figures, &more.join(", "))?;
        self.slowest.keep(measurement);
        Ok(())
    }
}

impl Telling for Told<'_> {
    fn row(&mut self, measurement: &Measurement) -> io::Result<()> {
        let how = measurement.cache.map(Cache::words).unwrap_or_default();
        self.tell(&Row { measurement, stored_bytes: None }, how)
    }

    fn ran(&mut self, (what, moved): (&str, bool), of: &str, ran: &Ran) -> io::Result<()> {
        let measurement = ran.measurement(format!("{what}{of}"), moved);
        let row = Row {
            measurement: &measurement,
            stored_bytes: Some(ran.stored_bytes).filter(|&stored| stored > 0),
        };
        let stored = row.stored_bytes.map(|stored| format!("{} stored", size(stored)));
        let limit = match ran.verdict.limited_by {
            Layer::Nothing => None,
            layer => Some(format!("limited by {layer}")),
        };
        let cache = measurement.cache.map(|cache| cache.words().to_owned());
        let how: Vec<_> = [cache, stored, limit].into_iter().flatten().collect();
        if ran.problems > 0 {
            self.note(&format!("{what}{of}: {} could not be read.", counted(ran.problems, "item")));
        }
        self.tell(&row, &how.join(", "))
    }

    fn counts(&mut self, ran: &Ran) {
        self.slowest.add(Some(ran.rate(ran.bytes)));
    }

    fn note(&mut self, note: &str) {
        self.notes.push(note.to_owned());
    }
}
