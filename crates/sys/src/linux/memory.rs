//! Memory: how much this process took at most, and which folders are memory in disguise.

use std::io;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

use super::cpu::{Cgroup, own_groups};
use super::process::stat_field;

/// Magic numbers of file systems that lie in memory: tmpfs and ramfs (`linux/magic.h`).
const TMPFS_MAGIC: u32 = 0x0102_1994;
const RAMFS_MAGIC: u32 = 0x8584_58f6;

/// The most memory that this process ever had resident, in bytes.
///
/// # Errors
///
/// What the system says when `/proc/self/status` is read.
pub fn peak_rss_bytes() -> io::Result<u64> {
    status_bytes(Path::new("/proc/self/status"), "VmHWM:")
}

/// The memory that this process has resident now, in bytes.
///
/// # Errors
///
/// As for [`peak_rss_bytes`].
pub fn rss_bytes() -> io::Result<u64> {
    status_bytes(Path::new("/proc/self/status"), "VmRSS:")
}

/// All memory of the computer, in bytes.
///
/// # Errors
///
/// What the system says when `/proc/meminfo` is read.
pub fn total_bytes() -> io::Result<u64> {
    status_bytes(Path::new("/proc/meminfo"), "MemTotal:")
}

/// The most memory that this process may have, in bytes, by its control groups and its own limits; `None` where
/// nothing but the computer's memory limits it.
#[must_use]
pub fn limit_bytes() -> Option<u64> {
    let of_groups = own_groups("memory").into_iter().filter_map(|group| {
        let file = match group {
            Cgroup::V1(folder) => folder.join("memory.limit_in_bytes"),
            Cgroup::V2(folder) => folder.join("memory.max"),
        };
        // "max" is no number, and no limit.
        std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok()
    });
    let own = [Resource::As, Resource::Data].map(|of| getrlimit(of).current);
    let all = total_bytes().unwrap_or(u64::MAX);
    of_groups.chain(own.into_iter().flatten()).filter(|limit| *limit < all).min()
}

/// How many bytes of addresses this process may still take, where `ulimit -v` limits them.
#[must_use]
pub fn addresses_left_bytes() -> Option<u64> {
    let limit = getrlimit(Resource::As).current?;
    let taken = status_bytes(Path::new("/proc/self/status"), "VmSize:").unwrap_or(0);
    Some(limit.saturating_sub(taken))
}

/// The most memory that another process ever had resident, in bytes.
///
/// # Errors
///
/// `NotFound` if there is none of that number, `InvalidData` if it has ended; else as for
/// [`peak_rss_bytes`].
pub fn peak_rss_bytes_of(pid: u32) -> io::Result<u64> {
    status_bytes(Path::new(&format!("/proc/{pid}/status")), "VmHWM:")
}

/// For how long some program had to wait for memory since the computer was started, in seconds:
/// for pages that came back from swap, that were read again, or that had to be freed for it. `None`
/// where the kernel keeps no count (pressure stall information).
#[must_use]
pub fn stalled_seconds() -> Option<f64> {
    stalled(&std::fs::read_to_string("/proc/pressure/memory").ok()?)
}

/// How many pages this process had to wait for since it began, because they were not in memory and had to
/// be read: from swap, or again from the file that they are of (its own code, too).
#[must_use]
pub fn pages_read_back() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    major_faults(&stat).unwrap_or(0)
}

fn major_faults(stat: &str) -> Option<u64> {
    stat_field(stat, 12)
}

/// Finds the total of the line `some avg10=0.00 avg60=0.00 avg300=0.00 total=12345`, in microseconds.
fn stalled(pressure: &str) -> Option<f64> {
    let some = pressure.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = some.split(' ').find_map(|field| field.strip_prefix("total="))?;
    Some(total.parse::<u64>().ok()? as f64 / 1e6)
}

/// Says whether what is written at `path` stays in memory.
///
/// # Errors
///
/// What the system says.
pub fn is_ram_disk(path: &Path) -> io::Result<bool> {
    // The type's width and sign differ from one architecture to the next; 32 bits hold it.
    let magic = (rustix::fs::statfs(path)?.f_type & 0xffff_ffff) as u64;
    Ok(magic == u64::from(TMPFS_MAGIC) || magic == u64::from(RAMFS_MAGIC))
}

fn status_bytes(path: &Path, field: &str) -> io::Result<u64> {
    kib_field(&std::fs::read_to_string(path)?, field)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no such line in status"))
}

/// Finds a line such as `VmHWM:     1234 kB` and returns bytes.
fn kib_field(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_line_is_read_in_bytes() {
        assert_eq!(kib_field("Name:\tx\nVmHWM:\t    12 kB\n", "VmHWM:"), Some(12 * 1024));
        assert_eq!(kib_field("VmHWM:\t 99999999999999999999 kB\n", "VmHWM:"), None);
        assert_eq!(kib_field("State:\tZ\n", "VmHWM:"), None);
    }

    #[test]
    fn waiting_for_memory_is_read_from_the_line_of_some() {
        let line = |who, total| format!("{who} avg10=0.00 avg60=1.50 avg300=2.00 total={total}\n");
        assert_eq!(stalled(&(line("full", 7) + &line("some", 2_500_000))), Some(2.5));
        for odd in [String::new(), line("full", 7), "some avg10=0.00\n".into(), line("some", -1)] {
            assert_eq!(stalled(&odd), None, "{odd}");
        }
    }

    #[test]
    fn major_faults_are_the_twelfth_field_whatever_the_program_is_called() {
        let line = |name| format!("7 ({name}) S 1 7 7 0 -1 4194560 70398 0 41 6 231 99");
        assert_eq!(major_faults(&line("holdall")), Some(41));
        assert_eq!(major_faults(&line("a ) b (c) ")), Some(41));
        for odd in ["", "7 (holdall) S 1", "7 holdall S 1 7 7 0 -1 4 7 0 41 6"] {
            assert_eq!(major_faults(odd), None, "{odd}");
        }
    }

    #[test]
    fn this_process_never_has_more_than_its_peak() {
        let now = rss_bytes().expect("proc is mounted");
        let peak = peak_rss_bytes().expect("proc is mounted");
        assert!(total_bytes().expect("proc is mounted") > now);
        assert!(now > 0 && peak_rss_bytes_of(std::process::id()).expect("it lives") >= peak);
    }

    #[test]
    fn proc_is_no_ram_disk_and_a_missing_path_is_an_error() {
        assert!(!is_ram_disk(Path::new("/proc")).expect("proc is mounted"));
        is_ram_disk(Path::new("/proc/self/no-such-file")).expect_err("it is missing");
    }
}
