//! A child process that is waited for beside other things, and asked to end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command, ExitStatus};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

/// A child process, ready to be polled for: it is readable once it has ended.
#[derive(Debug)]
pub struct WatchedChild {
    child: Child,
    ended: OwnedFd,
}

impl WatchedChild {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// What the system says. No child is left behind.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        let mut child = command.spawn()?;
        match pid(&child).and_then(|pid| Ok(pidfd_open(pid, PidfdFlags::empty())?)) {
            Ok(ended) => Ok(Self { child, ended }),
            Err(error) => {
                child.kill()?;
                child.wait()?;
                Err(error)
            }
        }
    }

    /// Its number, which is its own until [`WatchedChild::try_wait`] says how it ended.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end, as `kill` does (SIGTERM).
    pub fn terminate(&self) {
        // It was not waited for yet, so that the number is its own; one that has ended needs no asking.
        let _ = pid(&self.child).map(|pid| kill_process(pid, Signal::TERM));
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
    }

    /// How it ended; `None` while it goes on.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Waits until it ends.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }
}

impl AsFd for WatchedChild {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }
}

fn pid(child: &Child) -> io::Result<Pid> {
    let number = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    number.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waiting::{is_ready, wait};
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn a_child_is_waited_for_beside_other_things_and_can_be_asked_to_end() {
        let mut child = WatchedChild::spawn(Command::new("sleep").arg("600")).unwrap();
        assert!(!is_ready(&child).unwrap() && child.try_wait().unwrap().is_none());
        child.terminate();
        wait(&[child.as_fd()]).unwrap();
        assert_eq!(child.try_wait().unwrap().unwrap().signal(), Some(15));
        child.terminate();
    }
}
