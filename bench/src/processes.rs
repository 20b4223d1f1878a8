//! What a server and all processes below it use, by sampling.
//!
//! A server of several processes has no counter of its own, and a child that ends may take its
//! figures along; so a thread looks every 100 ms and keeps the highest that it saw.

use std::fs;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Result, anyhow};

/// What the kernel counts `utime` and `stime` in; fixed for user space.
pub(crate) const TICKS_PER_SECOND: f64 = 100.0;
const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// What processes used until now, and hold now.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    pub(crate) cpu_seconds: f64,
    pub(crate) resident_bytes: u64,
}

impl Usage {
    /// Of the process `root` and everything below it; nothing of what is gone.
    pub(crate) fn of_tree(root: u32) -> Self {
        tree(root).into_iter().fold(Self::default(), |sum, pid| Self {
            cpu_seconds: sum.cpu_seconds + cpu_seconds(pid).unwrap_or(0.0),
            resident_bytes: sum.resident_bytes + status_bytes(pid, "VmRSS:").unwrap_or(0),
        })
    }

    fn highest(self, other: Self) -> Self {
        Self {
            cpu_seconds: self.cpu_seconds.max(other.cpu_seconds),
            resident_bytes: self.resident_bytes.max(other.resident_bytes),
        }
    }
}

/// The process `root` and all below it, parents first.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut at = 0;
    while let Some(pid) = found.get(at) {
        found.extend(children(*pid));
        at += 1;
    }
    found
}

fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let of_thread = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).ok();
    let lists: Vec<String> = threads.filter_map(Result::ok).filter_map(of_thread).collect();
    lists.iter().flat_map(|list| list.split_whitespace()).flat_map(str::parse).collect()
}

/// CPU of a process and of its children that it waited for.
fn cpu_seconds(pid: u32) -> Option<f64> {
    parse_cpu_seconds(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_cpu_seconds(stat: &str) -> Option<f64> {
    // The second field is the name in brackets, which may hold anything.
    let after_name = stat.rsplit_once(") ")?.1;
    let ticks: f64 = after_name.split(' ').skip(11).take(4).flat_map(str::parse::<f64>).sum();
    Some(ticks / TICKS_PER_SECOND)
}

/// A figure of `/proc/PID/status` that is in kB.
fn status_bytes(pid: u32, field: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kib << 10)
}

/// A thread that follows a server while a command runs.
pub(crate) struct Watch {
    root: u32,
    before: Usage,
    stop: Sender<()>,
    thread: JoinHandle<Usage>,
}

impl Watch {
    /// Starts to follow the process `root` and everything below it.
    pub(crate) fn start(root: u32) -> Self {
        // Starts the peak anew; where that is not allowed, the samples alone count.
        let is_reset = fs::write(format!("/proc/{root}/clear_refs"), "5").is_ok();
        let before = Usage::of_tree(root);
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || {
            let mut seen = sample_until(&stopped, root, before);
            // Exact for the root, and never above the tree's true peak.
            let peak_bytes = is_reset.then(|| status_bytes(root, "VmHWM:")).flatten();
            seen.resident_bytes = seen.resident_bytes.max(peak_bytes.unwrap_or(0));
            seen
        });
        Self { root, before, stop, thread }
    }

    /// CPU used since the start, and the highest memory seen.
    ///
    /// # Errors
    ///
    /// If the server ended meanwhile.
    pub(crate) fn finish(self) -> Result<Usage> {
        drop(self.stop);
        let seen = self.thread.join().map_err(|_| anyhow!("the sampling thread panicked"))?;
        if cpu_seconds(self.root).is_none() {
            return Err(anyhow!("the server has ended"));
        }
        let cpu_seconds = seen.cpu_seconds - self.before.cpu_seconds;
        Ok(Usage { cpu_seconds, ..seen })
    }
}

fn sample_until(stopped: &Receiver<()>, root: u32, before: Usage) -> Usage {
    let mut seen = before;
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(SAMPLE_EVERY) {
        seen = seen.highest(Usage::of_tree(root));
    }
    seen.highest(Usage::of_tree(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_a_process_are_behind_a_name_with_brackets() {
        let stat = "7 (a) b) S 1 7 7 0 -1 0 0 0 0 0 150 50 20 30 20 0 1 0 9";
        assert_eq!(parse_cpu_seconds(stat), Some(2.5));
        assert_eq!(parse_cpu_seconds("nothing"), None);
    }

    #[test]
    fn this_process_is_in_its_own_tree_and_has_memory() {
        let own = std::process::id();
        assert_eq!(tree(own)[0], own);
        assert!(Usage::of_tree(own).resident_bytes > 0);
        assert!(Watch::start(own).finish().unwrap().resident_bytes > 0);
    }
}
