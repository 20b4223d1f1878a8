//! Watching a process with strace.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::History;
use super::trace::{CALLS, parse};

/// Runs processes under strace and adds what they did to a history.
#[derive(Debug)]
pub struct Watch {
    trace: PathBuf,
}

impl Watch {
    /// A watch that keeps its trace in the file `trace`.
    #[must_use]
    pub fn new(trace: &Path) -> Self {
        Self { trace: trace.to_owned() }
    }

    /// Runs `command` until it ends and adds what it did to `history`. With `killed_at`, it is killed
    /// as by `kill -9` when any of its threads makes that call for that many times: a call of strace's
    /// names, counted from 1.
    ///
    /// # Errors
    ///
    /// What the system says; `InvalidData` for a call that the model does not know.
    pub fn run(
        &self,
        command: &Command,
        history: &mut History,
        killed_at: Option<(&str, u32)>,
    ) -> io::Result<Output> {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-xx", "-s", "100000000", "-o"]).arg(&self.trace);
        strace.args(["-e", &format!("trace={CALLS}")]);
        if let Some((call, times)) = killed_at {
            strace.args(["-e", &format!("inject={call}:signal=KILL:when={times}")]);
        }
        strace.arg("--").arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => strace.env(name, value),
                None => strace.env_remove(name),
            };
        }
        let output = strace.output()?;
        let calls = parse(&String::from_utf8_lossy(&std::fs::read(&self.trace)?));
        history.add(calls).map_err(|reason| io::Error::new(io::ErrorKind::InvalidData, reason))?;
        Ok(output)
    }
}
