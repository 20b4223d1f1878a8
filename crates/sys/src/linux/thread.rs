//! Threads: starting one where the system may refuse it, and what the system counted of one.
//!
//! A user, a service and a container may each have only so many threads. The standard library's `spawn`
//! panics where no other may start, and everything that waits for that thread then waits for ever. So all
//! threads are started here, and each caller does with fewer or ends with the error.

use std::path::PathBuf;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};
use std::{fs, io};

/// Starts a thread that a scope waits for. `work` is dropped where that fails.
///
/// # Errors
/// The system allows no other thread; the message names what sets such limits.
pub fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    Builder::new().spawn_scoped(scope, work).map_err(|error| refused(&error))
}

/// Starts a thread that may outlive its caller. `work` is dropped where that fails.
///
/// # Errors
/// Those of [`start`].
pub fn start_alone(work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().spawn(work).map_err(|error| refused(&error))
}

/// Has `work` done by another thread, and waits for it; by this one if no other may start.
///
/// The system gives a signal to the first thread of a process, if that has not blocked it. So that one must not wait for a
/// file system that does not answer, where no signal is handled.
pub fn beside_signals(work: impl FnOnce() + Send) {
    /// As much as the first thread usually has.
    const STACK_BYTES: usize = 8 << 20;
    let mut work = Some(work);
    let mut do_work = || {
        if let Some(work) = work.take() {
            work();
        }
    };
    std::thread::scope(|scope| {
        let started = Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, &mut do_work);
        if let Err(panic) = started.map_or(Ok(()), |started| started.join()) {
            std::panic::resume_unwind(panic);
        }
    });
    do_work();
}

/// Tests that so many threads can be started at once, for what panics where they cannot.
///
/// # Errors
/// Those of [`start`].
pub fn test(threads: usize) -> io::Result<()> {
    let (hold, held) = std::sync::mpsc::channel::<()>();
    let held = &std::sync::Mutex::new(held);
    std::thread::scope(|scope| {
        let wait = || drop(held.lock().map(|held| held.recv()));
        let tested = (0..threads).try_for_each(|_| start(scope, wait).map(drop));
        drop(hold);
        tested
    })
}

/// Tests that so many files can be opened at once, for what panics where they cannot.
///
/// # Errors
/// What the system says, such as `EMFILE`.
pub fn test_files(files: usize) -> io::Result<()> {
    let opened = (0..files).map(|_| std::fs::File::open("/dev/null"));
    opened.collect::<io::Result<Vec<_>>>().map(drop)
}

fn refused(error: &io::Error) -> io::Error {
    let reason = format!(
        "the system allows no other thread ({error}): raise the limit on threads (`ulimit -u`, TasksMax of \
         a service, `pids` of a container), or end other processes"
    );
    io::Error::new(error.kind(), reason)
}

/// The counts of one thread.
#[derive(Debug)]
pub struct ThreadCounts {
    folder: PathBuf,
}

impl ThreadCounts {
    /// Those of the calling thread.
    #[must_use]
    pub fn here() -> Self {
        let thread = rustix::thread::gettid().as_raw_nonzero();
        Self { folder: format!("/proc/self/task/{thread}").into() }
    }

    /// The processor time that it used, user and system, to a tick, in seconds; `None` where the system does
    /// not tell, or the thread ended.
    #[must_use]
    pub fn cpu_seconds(&self) -> Option<f64> {
        let stat = fs::read_to_string(self.folder.join("schedstat")).ok()?;
        let nanoseconds: u64 = stat.split(' ').next()?.parse().ok()?;
        Some(nanoseconds as f64 / 1e9)
    }

    /// How many bytes it made the system read from disks, or write to them now or later; `None` where that is
    /// not counted, or the thread ended.
    #[must_use]
    pub fn disk_bytes(&self) -> Option<u64> {
        let counts = fs::read_to_string(self.folder.join("io")).ok()?;
        super::process::disk_bytes_of(&counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::thread_cpu_seconds;

    #[test]
    fn what_a_thread_uses_is_seen_from_another_until_it_ends() {
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let begun = thread_cpu_seconds();
            while thread_cpu_seconds() < begun + 0.1 {}
            tell.send(ThreadCounts::here()).unwrap();
            ended.recv().unwrap_err();
        });
        let counts = told.recv().unwrap();
        let used = counts.cpu_seconds().unwrap();
        assert!((0.05..0.2).contains(&used), "{used}");
        assert!(counts.disk_bytes().is_some());
        drop(end);
        thread.join().unwrap();
        assert_eq!((counts.cpu_seconds(), counts.disk_bytes()), (None, None));
    }
}
