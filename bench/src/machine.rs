//! The computer that measures: what it is, and how busy all of it has been.

use std::fs;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::processes::TICKS_PER_SECOND;

/// What figures depend on beside the tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cores: usize,
    pub(crate) cpu: String,
    pub(crate) kernel: String,
    pub(crate) memory_bytes: u64,
    /// Where sources, repositories and restores lie.
    pub(crate) file_system: String,
}

impl Machine {
    /// This computer, with its work folder on `file_system`.
    pub(crate) fn here(file_system: &str) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let system = rustix::system::uname();
        let architecture = system.machine().to_string_lossy().into_owned();
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            cpu: field(&read("/proc/cpuinfo"), "model name").unwrap_or(architecture),
            kernel: system.release().to_string_lossy().into_owned(),
            memory_bytes: memory_bytes("MemTotal"),
            file_system: file_system.to_owned(),
        }
    }

    /// For the head of a table.
    pub(crate) fn words(&self) -> String {
        let memory_gib = self.memory_bytes as f64 / (1u64 << 30) as f64;
        format!(
            "{} cores of {}, {memory_gib:.0} GiB of memory, Linux {}, {}",
            self.cores, self.cpu, self.kernel, self.file_system
        )
    }
}

/// Bytes that a line of `/proc/meminfo` tells; 0 if there is none of that name.
pub(crate) fn memory_bytes(name: &str) -> u64 {
    let told = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = field(&told, name).and_then(|text| text.trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// The value of the first `name : value` in a text of `/proc`.
fn field(text: &str, name: &str) -> Option<String> {
    let value_of =
        |line: &str| line.strip_prefix(name)?.trim().strip_prefix(':').map(str::to_owned);
    text.lines().find_map(value_of).map(|value| value.trim().to_owned())
}

/// CPU seconds of all cores since the computer started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Busy {
    /// Of everything that ran here, the kernel included.
    pub(crate) cpu_seconds: f64,
    /// Taken away by the host of a virtual machine.
    pub(crate) steal_seconds: f64,
}

impl Busy {
    /// Until now.
    ///
    /// # Errors
    ///
    /// If `/proc/stat` cannot be read.
    pub(crate) fn now() -> Result<Self> {
        let stat = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
        Self::parse(&stat).context("an odd /proc/stat")
    }

    /// From `before` until now.
    ///
    /// # Errors
    ///
    /// If `/proc/stat` cannot be read.
    pub(crate) fn since(before: Self) -> Result<Self> {
        let now = Self::now()?;
        Ok(Self {
            cpu_seconds: now.cpu_seconds - before.cpu_seconds,
            steal_seconds: now.steal_seconds - before.steal_seconds,
        })
    }

    fn parse(stat: &str) -> Option<Self> {
        let figures = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        let seconds: Vec<f64> =
            figures.flat_map(str::parse::<f64>).map(|ticks| ticks / TICKS_PER_SECOND).collect();
        let [user, nice, system, _idle, _waiting, irq, soft_irq, steal, ..] = seconds[..] else {
            return None;
        };
        let cpu_seconds = user + nice + system + irq + soft_irq;
        Some(Self { cpu_seconds, steal_seconds: steal })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_everything_but_idle_and_waiting() {
        let busy = Busy::parse("cpu  100 200 300 999 999 1 2 50 0 0\ncpu0 1 2\n").unwrap();
        assert!((busy.cpu_seconds - 6.03).abs() < 1e-9);
        assert!((busy.steal_seconds - 0.5).abs() < 1e-9);
        assert!(Busy::parse("intr 1").is_none());
        assert!(Busy::now().is_ok());
    }

    #[test]
    fn a_field_is_found_whatever_pads_it() {
        let text = "processor\t: 0\nmodel name\t: Some CPU\nmodel name\t: Other\n";
        assert_eq!(field(text, "model name").as_deref(), Some("Some CPU"));
        assert_eq!(field("MemTotal:   24 kB\n", "MemTotal").as_deref(), Some("24 kB"));
        assert_eq!(field(text, "missing"), None);
    }

    #[test]
    fn this_computer_has_words() {
        let machine = Machine::here("ext4");
        assert!(machine.cores > 0 && machine.words().ends_with(", ext4"));
    }
}
