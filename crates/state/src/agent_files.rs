//! What the agent keeps, in the folder `agent`: its state, a pause, and a lock that says which process is the agent.
//!
//! `holdall agent status` and `pause` read and write them beside the agent, which watches the folder. So it needs no
//! socket, and what it knows can be read when it is gone.

use std::path::{Path, PathBuf};

use holdall_agent::{Pause, Report, STATE_MAX_BYTES};
use holdall_crypto::{Entropy, SystemEntropy};
use holdall_sys::{guarded, lock};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::StateError;
use crate::private_file;

/// The files of the agent.
pub struct AgentFiles {
    folder: PathBuf,
}

/// This process is the agent until it drops this.
pub struct IsAgent {
    _lock: lock::Held,
}

impl AgentFiles {
    /// Those in a state folder.
    pub fn in_state(state: &Path) -> Self {
        Self { folder: state.join("agent") }
    }

    /// Where they are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes this process the agent; `None` if another one is.
    ///
    /// # Errors
    /// If the folder cannot be made, or the lock's file not be opened.
    pub fn be_the_agent(&self) -> Result<Option<IsAgent>, StateError> {
        private_file::make_folder(&self.folder)?;
        let path = self.lock();
        private_file::write_new(&path, b"")?;
        let file = guarded::open_regular(&path);
        let cannot = || StateError::io(format!("cannot lock {}", path.display()));
        let held = lock::Held::exclusive(file.map_err(cannot())?).map_err(cannot())?;
        Ok(held.map(|lock| IsAgent { _lock: lock }))
    }

    /// Which process is the agent, for people; `None` if there is none, or that cannot be known.
    pub fn agent(&self) -> Option<String> {
        lock::holder(&guarded::open_regular(&self.lock()).ok()?)
    }

    /// What the agent wrote last of itself; of one that never ran, [`Self::new_report`].
    ///
    /// # Errors
    /// If the file cannot be read, or is damaged.
    pub fn report(&self) -> Result<Report, StateError> {
        Ok(self.read("state.json")?.unwrap_or_else(Self::new_report))
    }

    /// That of an agent that knows nothing yet, with a seed of its own.
    pub fn new_report() -> Report {
        let (mut seed, mut report) = ([0; 8], Report::default());
        SystemEntropy.fill(&mut seed);
        report.state.seed = u64::from_le_bytes(seed);
        report
    }

    /// Writes what the agent knows and is going to do.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_report(&self, report: &Report) -> Result<(), StateError> {
        self.write("state.json", report)
    }

    /// The pause, if there is one.
    ///
    /// # Errors
    /// If the file cannot be read, or is damaged.
    pub fn pause(&self) -> Result<Option<Pause>, StateError> {
        self.read("pause.json")
    }

    /// Pauses the agent, or ends its pause; says whether there was one.
    ///
    /// # Errors
    /// If the file cannot be written or removed.
    pub fn set_pause(&self, pause: Option<Pause>) -> Result<bool, StateError> {
        let path = self.folder.join("pause.json");
        match pause {
            Some(pause) => self.write("pause.json", &pause).map(|()| true),
            None => match guarded::place(&path).remove_file() {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
                removed => {
                    let cannot = StateError::io(format!("cannot remove {}", path.display()));
                    removed.map(|()| true).map_err(cannot)
                }
            },
        }
    }

    /// The file in which a run is told what may have changed.
    pub fn changes(&self) -> PathBuf {
        self.folder.join("changes")
    }

    /// Writes what may have changed, for the run that asks. Nothing stands for everything.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_changes(&self, changes: &[u8]) -> Result<(), StateError> {
        private_file::replace(&self.changes(), changes)
    }

    /// Removes what an earlier run was told.
    ///
    /// # Errors
    /// If the file is there and cannot be removed.
    pub fn remove_changes(&self) -> Result<(), StateError> {
        private_file::remove(&self.changes())
    }

    fn lock(&self) -> PathBuf {
        self.folder.join("lock")
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, StateError> {
        let path = self.folder.join(name);
        let Some(bytes) = private_file::read(&path, STATE_MAX_BYTES)? else { return Ok(None) };
        let damaged = StateError::io(format!("{} is damaged", path.display()));
        serde_json::from_slice(&bytes).map(Some).map_err(|error| damaged(error.into()))
    }

    fn write(&self, name: &str, content: &impl Serialize) -> Result<(), StateError> {
        private_file::replace(&self.folder.join(name), &serde_json::to_vec(content)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn one_process_is_the_agent_until_it_ends() {
        let state = tempfile::tempdir().unwrap();
        let files = AgentFiles::in_state(state.path());
        let agent = files.be_the_agent().unwrap();
        assert!(agent.is_some() && files.be_the_agent().unwrap().is_none());
        drop(agent);
        assert!(files.be_the_agent().unwrap().is_some());
    }

    #[test]
    fn a_state_that_is_gone_begins_anew_with_a_seed_of_its_own_and_a_damaged_one_is_told() {
        let state = tempfile::tempdir().unwrap();
        let files = AgentFiles::in_state(state.path());
        let report = files.report().unwrap();
        assert_ne!(report.state.seed, 0);
        files.write_report(&report).unwrap();
        assert_eq!(files.report().unwrap(), report);
        fs::write(files.folder().join("state.json"), "{\"seed\": ").unwrap();
        let damaged = files.report().unwrap_err().to_string();
        assert!(damaged.ends_with("state.json is damaged"), "{damaged}");
        assert_ne!(AgentFiles::new_report().state.seed, report.state.seed);
    }

    #[test]
    fn a_pause_lasts_until_its_moment_or_until_it_is_ended() {
        let state = tempfile::tempdir().unwrap();
        let files = AgentFiles::in_state(state.path());
        assert_eq!(files.pause().unwrap(), None);
        assert!(!files.set_pause(None).unwrap());
        let until = Some("2026-11-30T08:00:00Z".parse().unwrap());
        files.set_pause(Some(Pause { until })).unwrap();
        assert_eq!(files.pause().unwrap(), Some(Pause { until }));
        fs::write(files.folder().join("pause.json"), "?").unwrap();
        files.pause().unwrap_err();
        assert!(files.set_pause(None).unwrap() && files.pause().unwrap().is_none());
    }
}
