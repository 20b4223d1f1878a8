//! Waiting for the first of several things to happen, on one thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Waits until one of these can be read without waiting. A signal ends it, too.
///
/// # Errors
///
/// What the system says.
pub fn wait(any_of: &[BorrowedFd<'_>]) -> io::Result<()> {
    poll_for(any_of, None)
}

/// The same, for no longer than that.
///
/// # Errors
///
/// What the system says.
pub fn wait_at_most(any_of: &[BorrowedFd<'_>], most: Duration) -> io::Result<()> {
    let seconds = i64::try_from(most.as_secs()).unwrap_or(i64::MAX);
    poll_for(any_of, Some(&Timespec { tv_sec: seconds, tv_nsec: most.subsec_nanos().into() }))
}

fn poll_for(any_of: &[BorrowedFd<'_>], most: Option<&Timespec>) -> io::Result<()> {
    let mut polled: Vec<_> = any_of.iter().map(|one| PollFd::new(one, PollFlags::IN)).collect();
    match poll(&mut polled, most) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether something can be read without waiting.
///
/// # Errors
///
/// What the system says.
pub fn is_ready(one: impl AsFd) -> io::Result<bool> {
    let mut polled = [PollFd::new(&one, PollFlags::IN)];
    Ok(poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? > 0)
}
