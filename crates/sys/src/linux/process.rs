//! Which process this is, said so that another can find out later whether it lives.
//!
//! A number alone is given out again; with the time when its process started, and the boot and the
//! namespace in which it is that process's number, it means one process for good.

use std::fs;
use std::io;

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// What the system counted of this process.
const OWN_IO: &str = "/proc/self/io";
/// Places in `/proc/PID/stat`.
const STATE: usize = 3;
const START_TIME: usize = 22;

/// Names this process: boot, process namespace, number and start time, parted by spaces.
///
/// # Errors
///
/// What the system says where `/proc` is not mounted.
pub fn own() -> io::Result<String> {
    let (boot, number) = (boot()?, std::process::id());
    Ok(format!("{boot} {number} {}", started(number)?))
}

/// Says whether the process that [`own`] named so has ended. `false` where this cannot be known,
/// as of a process on another computer.
///
/// Untrusted: `name` may be anything.
#[must_use]
pub fn has_ended(name: &str) -> bool {
    let Ok(boot) = boot() else { return false };
    let Some((number, start)) =
        name.strip_prefix(&boot).and_then(|rest| rest.trim_start().split_once(' '))
    else {
        return false;
    };
    let (Ok(number), Ok(start)) = (number.parse::<u32>(), start.parse::<u64>()) else {
        return false;
    };
    match fs::read_to_string(format!("/proc/{number}/stat")) {
        Ok(stat) => stat_field(&stat, START_TIME) != Some(start) || is_zombie(&stat),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Tests that the system gives random numbers. Libraries abort the process where a sandbox refuses them; where
/// there is only no such call, they read `/dev/urandom`.
///
/// # Errors
///
/// `EPERM`.
pub fn test_random_numbers() -> io::Result<()> {
    match getrandom(&mut [0], GetRandomFlags::NONBLOCK) {
        Err(Errno::PERM) => Err(Errno::PERM.into()),
        _ => Ok(()),
    }
}

/// Takes from the umask what it takes from the owner: no file or folder is made that its owner cannot use.
/// Of what others may, everything stays as it was.
pub fn keep_own_rights() {
    let mask = rustix::process::umask(Mode::all());
    rustix::process::umask(mask.difference(Mode::RWXU));
}

/// Has this thread, and the threads and processes that it starts from then on, stand back behind others (a nice value of 10, by which disks go,
/// too), unless they do so already. Where that is not allowed, nothing changes.
pub fn stand_back() {
    const NICE: i32 = 10;
    if rustix::process::getpriority_process(None).is_ok_and(|nice| nice < NICE) {
        let _ = rustix::process::setpriority_process(None, NICE);
    }
}

/// Whether whoever started this process has it ignore a signal, as `nohup` does with that of a terminal that goes
/// away. Ask before any handler is set.
#[must_use]
pub fn ignores(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status");
    status.is_ok_and(|status| is_ignored_by(&status, signal))
}

/// The same of what `/proc/PID/status` says: a line with a bit for each signal, in hexadecimal.
fn is_ignored_by(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    (1..=64).contains(&signal) && mask >> (signal - 1) & 1 == 1
}

/// How many bytes this process made the system read from disks so far; `None` where that is not
/// counted.
#[must_use]
pub fn bytes_read_from_disks() -> Option<u64> {
    io_count("read_bytes: ")
}

/// How many bytes this process made the system write to disks, now or later, so far; `None` where that
/// is not counted.
#[must_use]
pub fn bytes_written_to_disks() -> Option<u64> {
    io_count("write_bytes: ")
}

/// How many bytes this process made the system read from disks and write to them so far; `None` where that is
/// not counted.
#[must_use]
pub fn disk_bytes() -> Option<u64> {
    disk_bytes_of(&fs::read_to_string(OWN_IO).ok()?)
}

/// The same of whomever these counts are of.
pub(crate) fn disk_bytes_of(counts: &str) -> Option<u64> {
    Some(count_in(counts, "read_bytes: ")? + count_in(counts, "write_bytes: ")?)
}

fn io_count(name: &str) -> Option<u64> {
    count_in(&fs::read_to_string(OWN_IO).ok()?, name)
}

/// A line of what the system counted (proc_pid_io(5)).
fn count_in(counts: &str, name: &str) -> Option<u64> {
    counts.lines().find_map(|line| line.strip_prefix(name))?.parse().ok()
}

/// What numbers of processes mean something in: this boot and this namespace.
fn boot() -> io::Result<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let namespace = fs::read_link("/proc/self/ns/pid")?;
    Ok(format!("{} {}", boot.trim(), namespace.display()))
}

/// When a process started, in clock ticks since the boot.
fn started(number: u32) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{number}/stat"))?;
    stat_field(&stat, START_TIME).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Whether a process does nothing any more but wait for whoever started it to ask how it ended.
pub(super) fn is_zombie(stat: &str) -> bool {
    stat_word(stat, STATE) == Some("Z")
}

/// A number from `/proc/PID/stat`, by its place there (proc_pid_stat(5)), from 4.
pub(super) fn stat_field(stat: &str, place: usize) -> Option<u64> {
    stat_word(stat, place)?.parse().ok()
}

fn stat_word(stat: &str, place: usize) -> Option<&str> {
    // The second, the name in parentheses, is the process's own choice, and may hold any of both.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(place.checked_sub(3)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn ignored_signals_are_told_by_their_bits() {
        let status = "Name:\tx\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001003\n";
        let ignored: Vec<i32> = (-1..70).filter(|&one| is_ignored_by(status, one)).collect();
        assert_eq!(ignored, [1, 2, 13]);
        assert!(!is_ignored_by("", 1) && !ignores(15));
    }

    #[test]
    fn what_was_read_from_disks_and_written_to_them_is_added_up() {
        let counts = "rchar: 900\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 7\n";
        assert_eq!(disk_bytes_of(counts), Some(12_288));
        assert_eq!(disk_bytes_of("rchar: 900\nread_bytes: 4096\n"), None);
        assert!(disk_bytes().is_some());
    }

    #[test]
    fn a_process_that_lives_has_not_ended_and_one_that_is_gone_has() {
        let own = own().unwrap();
        assert!(!has_ended(&own));
        let (place, _) = own.rsplit_once(' ').unwrap();
        assert!(has_ended(&format!("{place} 0")), "another had the number before");
        let mut child = Command::new("true").spawn().unwrap();
        let (boot, _) = place.rsplit_once(' ').unwrap();
        let name = format!("{boot} {} {}", child.id(), started(child.id()).unwrap());
        let state = || fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        while !is_zombie(&state()) {
            std::thread::yield_now();
        }
        assert!(has_ended(&name), "nobody asked yet how it ended");
        child.wait().unwrap();
        assert!(has_ended(&name));
    }

    #[test]
    fn what_is_written_is_counted() {
        let Some(before) = bytes_written_to_disks() else { return };
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        fs::write(folder.path().join("file"), [1; 100_000]).unwrap();
        assert!(bytes_written_to_disks().unwrap() >= before + 100_000);
        assert!(bytes_read_from_disks().is_some());
    }

    #[test]
    fn nothing_is_known_of_other_computers_and_nonsense() {
        for name in ["", "x", "x pid:[1] 1 1", &own().unwrap()[1..]] {
            assert!(!has_ended(name), "{name}");
        }
    }
}
