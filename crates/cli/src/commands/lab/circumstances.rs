//! What figures depend on: told before them, every time.

use std::path::Path;

use anyhow::Result;
use holdall_lab::ground::Ground;
use holdall_repository::Clock;
use holdall_sys::host;
use serde::Serialize;

use crate::clock::SystemClock;
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
        let command: Vec<_> = std::env::args_os().skip(1).collect();
        let words = command.iter().map(|word| word.to_string_lossy());
        let ground = dir.map(|(_, ground)| ground.clone());
        Self {
            version: env!("CARGO_PKG_VERSION"),
            command: format!("holdall {}", words.collect::<Vec<_>>().join(" ")),
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
