//! How a backup that the agent started asks it what may have changed: right before it looks, when the hook `before` has ended.
//!
//! Its standard input is a connection to the agent. It writes a byte, and what comes back says that the file is written.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdall_sys::guarded;

/// An agent that takes longer has trouble of its own. Everything is looked at then.
const PATIENCE: Duration = Duration::from_secs(60);

/// The way to the agent, and the file in which it answers.
pub(super) struct Asking {
    agent: UnixStream,
    file: PathBuf,
}

impl Asking {
    /// Takes standard input, which nothing else of such a run reads.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn by_standard_input(file: &Path) -> io::Result<Self> {
        let agent = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        Ok(Self { agent, file: file.to_owned() })
    }

    /// Has the agent write what may have changed up to now. Without an answer there is no such file.
    pub(super) fn ask(&self) {
        if self.is_answered().is_err() {
            // One that is there was for an earlier run; one that cannot be removed, its folder lets nobody write either.
            let _ = guarded::place(&self.file).remove_file();
        }
    }

    fn is_answered(&self) -> io::Result<()> {
        let mut agent = &self.agent;
        agent.set_read_timeout(Some(PATIENCE))?;
        agent.write_all(b"?")?;
        agent.read_exact(&mut [0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_an_answer_what_an_earlier_run_was_told_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("changes");
        let ask = |answer: &[u8]| {
            std::fs::write(&file, "earlier").unwrap();
            let (agent, mut other) = UnixStream::pair().unwrap();
            other.write_all(answer).unwrap();
            if answer.is_empty() {
                drop(other);
            }
            Asking { agent, file: file.clone() }.ask();
            file.exists()
        };
        assert!(ask(b"!") && !ask(b""));
    }
}
