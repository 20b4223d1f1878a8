//! What figures depend on: told before them, every time.

use std::path::Path;

use anyhow::Result;
use holdall_lab::Measurement;
use holdall_lab::report::{Fact, Report};
use holdall_lab::storage_stack::StorageStack;
use holdall_sys::host;
use holdall_sys::{Clock, SystemClock};
use serde::Serialize;

use crate::lab::lab_report;
use crate::terminal::output::{JsonPath, Output, Shown, rfc3339, size};

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
    /// Which server is measured, and of which version, if one is.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    /// Where it is measured, if a directory is.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    directory: Option<JsonPath>,
    #[serde(flatten)]
    stack: Option<StorageStack>,
    /// What else is read or written, where that is another file system.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    other_places: Vec<OtherPlace>,
    /// What to make of it, in sentences.
    notes: Vec<String>,
}

/// A place beside the directory that is measured.
#[derive(Debug, Serialize)]
struct OtherPlace {
    /// What lies there, such as `source`.
    what: &'static str,
    #[serde(flatten)]
    stack: StorageStack,
}

impl Circumstances {
    /// Of this computer now, and of `dir`, if a directory is measured.
    ///
    /// # Errors
    /// If `dir` is not there.
    pub(crate) fn now(dir: Option<(&Path, &StorageStack)>) -> Self {
        use std::os::unix::ffi::OsStrExt;
        let stack = dir.map(|(_, stack)| stack.clone());
        Self {
            version: env!("CARGO_PKG_VERSION"),
            command: lab_report::command_line(std::env::args_os()),
            time: rfc3339(SystemClock.now_ns()),
            computer: host::host_name(),
            kernel: host::kernel(),
            processor: host::processor(),
            cores: holdall_sys::cpu::available_cores(),
            memory_bytes: holdall_sys::memory::total_bytes().ok(),
            server: None,
            directory: dir.map(|(dir, _)| JsonPath::new(dir.as_os_str().as_bytes())),
            notes: stack.as_ref().map(StorageStack::notes).unwrap_or_default(),
            stack,
            other_places: Vec::new(),
        }
    }

    /// Adds what another directory lies on, unless that is told already, or the system does not tell.
    pub(crate) fn add_place(&mut self, what: &'static str, dir: &Path) {
        let Ok(stack) = StorageStack::of(dir) else { return };
        let others = self.other_places.iter().map(|place| &place.stack);
        let mut told = self.stack.iter().chain(others);
        if told.all(|told| told.mount_point != stack.mount_point) {
            self.notes.extend(stack.notes().iter().map(|note| format!("{what}: {note}")));
            self.other_places.push(OtherPlace { what, stack });
        }
    }

    /// Names the server that is measured, too.
    pub(crate) fn set_server(&mut self, server: String) {
        self.server = Some(server);
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
        report.facts = self.facts();
        report.notes = self.notes.clone();
        report.measurements = rows.to_vec();
        report
    }

    /// The server, and what the directories lie on.
    fn facts(&self) -> Vec<Fact> {
        let here = self.stack.iter().flat_map(StorageStack::facts);
        let here = here.map(|(name, value)| Fact::new(name, value));
        let others = self.other_places.iter().flat_map(|OtherPlace { what, stack }| {
            let facts = stack.facts().into_iter();
            facts.map(move |(name, value)| Fact::new(format!("{what}, {name}"), value))
        });
        let server = self.server.iter().map(|server| Fact::new("server", server.as_str()));
        server.chain(here).chain(others).collect()
    }

    /// Tells it.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(crate) fn tell(&self, output: &Output) -> Result<()> {
        output.object("circumstances", self)?;
        let processor = self.processor.as_deref().unwrap_or("processor unknown");
        let memory = self.memory_bytes.map_or_else(|| "memory unknown".to_owned(), size);
        let Self { version, kernel, cores, .. } = self;
        output.say(format_args!(
            "holdall {version}, {kernel}, {cores} cores of {processor}, {memory}"
        ))?;
        for Fact { name, value } in self.facts() {
            output.say(format_args!("{name:<12} {}", Shown(value.as_bytes())))?;
        }
        for note in &self.notes {
            output.say(format_args!("note: {}", Shown(note.as_bytes())))?;
        }
        Ok(output.say("")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_file_system_is_told_once_and_by_what_lies_there() {
        let [root, proc] = ["/", "/proc"].map(Path::new);
        let stack = StorageStack::of(root).unwrap();
        let mut told = Circumstances::now(Some((root, &stack)));
        let without = told.facts().len();
        told.add_place("source", root);
        assert_eq!(told.facts().len(), without);
        told.add_place("source", proc);
        told.add_place("repository", proc);
        told.add_place("repository", Path::new("/no/such/folder"));
        let facts = told.facts().split_off(without);
        assert_eq!(facts[0], Fact::new("source, mounted at", "/proc"));
        assert!(facts.iter().all(|fact| fact.name.starts_with("source, ")), "{facts:?}");
    }
}
