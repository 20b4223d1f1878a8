//! The speed history of this machine's runs, as a file of JSON Lines.

use std::path::{Path, PathBuf};

use holdall_diagnosis::speed_history::{LIMIT_BYTES, Run, SpeedHistory};
use holdall_meter::cost::Slowness;

use crate::error::StateError;
use crate::private_file;

/// The file of runs.
pub struct RunHistory {
    file: PathBuf,
}

impl RunHistory {
    /// That of a state folder.
    pub fn in_state(state: &Path) -> Self {
        Self { file: state.join("speed-history.jsonl") }
    }

    /// The runs before; none if their file cannot be read.
    pub fn read(&self) -> SpeedHistory {
        let lines = private_file::read(&self.file, LIMIT_BYTES).ok().flatten();
        SpeedHistory::of_lines(&lines.unwrap_or_default())
    }

    /// Adds a run, and says whether it was slower than those before it. That the history cannot be written fails no
    /// backup.
    pub fn add(&self, run: Run) -> Option<Slowness> {
        let mut history = self.read();
        let slowness = history.add(run);
        let _ = self.keep(&history);
        slowness
    }

    fn keep(&self, history: &SpeedHistory) -> Result<(), StateError> {
        private_file::replace(&self.file, &history.to_lines()?)
    }
}
