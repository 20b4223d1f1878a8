//! What figures depend on: told before them, every time.

use std::path::Path;

use anyhow::Result;
use holdall_lab::Measurement;
use holdall_lab::ground::Ground;
use holdall_lab::report::{Fact, Report};
use holdall_repository::Clock;
use holdall_sys::host;
use serde::Serialize;

use crate::clock::SystemClock;
use crate::lab_report;
use crate::output::{JsonPath, Output, Shown, rfc3339, size};

/// What figures depend on.
#[derive(Debug, Serialize)]
pub(crate) struct Circumstances {
    version: &'static str,
    /// As it was typed.
    command: String,
    time: String,
    computer: String,
    kernel: String,
    processor: Option<String>,
    /// How many cores this process may keep busy.
    cores: f64,
    memory_bytes: Option<u64>,
    /// Where it is measured, if a directory is.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    directory: Option<JsonPath>,
    #[serde(flatten)]
    ground: Option<Ground>,
    /// What to make of it, in sentences.
    notes: Vec<String>,
}

impl Circumstances {
    /// Of this computer now, and of `dir`, if a directory is measured.
    ///
    /// # Errors
    /// If `dir` is not there.
    pub(crate) fn now(dir: Option<(&Path, &Ground)>) -> Self {
        use std::os::unix::ffi::OsStrExt;
        let ground = dir.map(|(_, ground)| ground.clone());
        Self {
            version: env!("CARGO_PKG_VERSION"),
            command: lab_report::command_line(std::env::args_os()),
            time: rfc3339(SystemClock.now_ns()),
            computer: host::host_name(),
            kernel: host::kernel(),
            processor: host::processor(),
            cores: holdall_sys::cpu::available_cores(),
            memory_bytes: holdall_sys::memory::total_bytes().ok(),
            directory: dir.map(|(dir, _)| JsonPath::new(dir.as_os_str().as_bytes())),
            notes: ground.as_ref().map(Ground::notes).unwrap_or_default(),
            ground,
        }
    }

    /// Adds a sentence.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// A report of these rows, which has all of this.
    pub(crate) fn report(&self, rows: &[Measurement]) -> Report {
        let mut report = Report::new(self.command.clone(), self.time.clone());
        let memory = self.memory_bytes.map(size);
        let known = [
            ("holdall", Some(self.version.to_owned())),
            ("computer", Some(self.computer.clone())),
            ("kernel", Some(self.kernel.clone())),
            ("processor", self.processor.clone()),
            ("cores", Some(self.cores.to_string())),
            ("memory", memory),
        ];
        let known = known.into_iter().filter_map(|(name, value)| Some(Fact::new(name, value?)));
        report.circumstances = known.collect();
        let facts = self.ground.iter().flat_map(Ground::facts);
        report.facts = facts.map(|(name, value)| Fact::new(name, value)).collect();
        report.notes = self.notes.clone();
        report.measurements = rows.to_vec();
        report
    }

    /// Tells it.
    ///
    /// # Errors
    /// If standard output can not be written.
    pub(crate) fn tell(&self, output: &Output) -> Result<()> {
        output.object("circumstances", self)?;
        let processor = self.processor.as_deref().unwrap_or("processor not told");
        let memory = self.memory_bytes.map_or_else(|| "memory not told".to_owned(), size);
        let Self { version, kernel, cores, .. } = self;
        output.say(format_args!(
            "holdall {version}, {kernel}, {cores} cores of {processor}, {memory}"
        ))?;
        for (name, fact) in self.ground.iter().flat_map(Ground::facts) {
            output.say(format_args!("{name:<12} {}", Shown(fact.as_bytes())))?;
        }
        for note in &self.notes {
            output.say(format_args!("note: {}", Shown(note.as_bytes())))?;
        }
        Ok(output.say("")?)
    }
}
