//! What the system counted of one thread, which others may ask for while it lives.

use std::fs;
use std::path::PathBuf;

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
