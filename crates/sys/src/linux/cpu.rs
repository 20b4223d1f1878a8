//! Processor time: how many cores this process may use, what it used, and what was withheld.
//!
//! A container's share is set by control groups, version 1 or 2, on any level above the process:
//! the tightest counts.

use std::path::PathBuf;

use rustix::time::{ClockId, Timespec};

use super::mounts::Mounts;

/// How many cores this process may keep busy: what its affinity allows, or less where a control
/// group limits it, such as 0.2.
#[must_use]
pub fn available_cores() -> f64 {
    let allowed = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count().max(1));
    let quotas = own_groups("cpu").into_iter().filter_map(|group| group.quota_cores());
    quotas.fold(f64::from(allowed), f64::min)
}

/// For how long this process's control groups held it back since they were made, in seconds,
/// added up over cores; `None` where no group keeps count.
#[must_use]
pub fn throttled_seconds() -> Option<f64> {
    // Each level counts what its own limit withheld, and they overlap: the largest is a lower
    // bound of the whole that never counts a moment twice.
    own_groups("cpu").into_iter().filter_map(|group| group.throttled_seconds()).reduce(f64::max)
}

/// The processor time that this process used, user and system, in seconds.
#[must_use]
pub fn process_cpu_seconds() -> f64 {
    seconds(rustix::time::clock_gettime(ClockId::ProcessCPUTime))
}

/// The processor time that the calling thread used, user and system, in seconds.
#[must_use]
pub fn thread_cpu_seconds() -> f64 {
    seconds(rustix::time::clock_gettime(ClockId::ThreadCPUTime))
}

/// What the cores of this computer did since it started, for all programs, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoreTimes {
    busy: u64,
    idle: u64,
    all: u64,
    cores: usize,
}

impl CoreTimes {
    /// Up to now; `None` where the system does not tell.
    #[must_use]
    pub fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?, gives_way())
    }

    /// Share of the time since `earlier` in which they were at work, from 0 to 1. What runs at low
    /// priority gives way to this process, and does not count, unless it has a low priority itself.
    #[must_use]
    pub fn busy_share_since(&self, earlier: &Self) -> f64 {
        let all = self.all.saturating_sub(earlier.all);
        let busy = self.busy.saturating_sub(earlier.busy);
        if all > 0 { (busy as f64 / all as f64).min(1.0) } else { 0.0 }
    }

    /// Share of the time since `earlier` in which nobody wanted them, from 0 to 1. What a host withholds
    /// from a virtual computer was wanted.
    #[must_use]
    pub fn idle_share_since(&self, earlier: &Self) -> f64 {
        let all = self.all.saturating_sub(earlier.all);
        let idle = self.idle.saturating_sub(earlier.idle);
        if all > 0 { (idle as f64 / all as f64).min(1.0) } else { 0.0 }
    }

    /// How many cores these are of.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// The first line of `/proc/stat`, behind which there is one for each core: `cpu user nice system idle iowait irq softirq steal ...`.
    /// What runs at low priority is told as `nice`, and counts as busy for whom `gives_way` itself.
    fn parse(stat: &str, gives_way: bool) -> Option<Self> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> =
            line.split_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
        let [user, nice, system, idle, iowait, irq, softirq, _steal] = ticks[..] else {
            return None;
        };
        let cores = stat.lines().skip(1).take_while(|line| line.starts_with("cpu")).count();
        let busy = user + system + irq + softirq + if gives_way { nice } else { 0 };
        Some(Self { busy, idle: idle + iowait, all: ticks.iter().sum(), cores })
    }
}

/// Whether this process runs at low priority, as holdall's service does.
fn gives_way() -> bool {
    rustix::process::getpriority_process(None).is_ok_and(|nice| nice > 0)
}

/// Where this process's groups of a controller are now: it may be moved while it runs.
pub(super) fn own_groups(controller: &str) -> Vec<Cgroup> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    find(&Mounts::read().unwrap_or_default(), &groups, controller)
}

/// The folder of one control group that may limit processor time or memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cgroup {
    V1(PathBuf),
    V2(PathBuf),
}

impl Cgroup {
    fn quota_cores(&self) -> Option<f64> {
        let read = |path: PathBuf| std::fs::read_to_string(path).ok();
        match self {
            Self::V1(folder) => quota_v1(
                &read(folder.join("cpu.cfs_quota_us"))?,
                &read(folder.join("cpu.cfs_period_us"))?,
            ),
            Self::V2(folder) => quota_v2(&read(folder.join("cpu.max"))?),
        }
    }

    fn throttled_seconds(&self) -> Option<f64> {
        let (folder, field, unit_seconds) = match self {
            Self::V1(folder) => (folder, "throttled_time", 1e-9),
            Self::V2(folder) => (folder, "throttled_usec", 1e-6),
        };
        let stat = std::fs::read_to_string(folder.join("cpu.stat")).ok()?;
        throttled(&stat, field).map(|units| units * unit_seconds)
    }
}

/// Finds the groups, from the process's own up to the root of what is mounted.
fn find(mounts: &Mounts, groups: &str, controller: &str) -> Vec<Cgroup> {
    groups.lines().filter_map(|line| levels(mounts, line, controller)).flatten().collect()
}

/// The levels of one line `number:controllers:path` of `/proc/self/cgroup`.
fn levels(mounts: &Mounts, line: &str, wanted: &str) -> Option<Vec<Cgroup>> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let is_v2 = controllers.is_empty();
    if !is_v2 && !controllers.split(',').any(|controller| controller == wanted) {
        return None;
    }
    let mount = mounts.iter().find(|mount| match is_v2 {
        true => mount.file_system == b"cgroup2",
        false => {
            let mut options = mount.options.split(|&byte| byte == b',');
            mount.file_system == b"cgroup" && options.any(|option| option == wanted.as_bytes())
        }
    })?;
    let point = PathBuf::from(String::from_utf8(mount.point.clone()).ok()?);
    // In a container the mount shows only a part of the hierarchy: its own.
    let root = std::str::from_utf8(&mount.root).ok()?.trim_end_matches('/');
    let below = path.strip_prefix(root).unwrap_or_default().trim_matches('/');
    let folders = PathBuf::from(below);
    let all = folders.ancestors().map(|folder| point.join(folder));
    Some(all.map(if is_v2 { Cgroup::V2 } else { Cgroup::V1 }).collect())
}

/// Microseconds of each period of microseconds; -1 is no limit.
fn quota_v1(quota: &str, period: &str) -> Option<f64> {
    cores(quota.trim(), period.trim())
}

/// `max 100000` or `20000 100000`: as in version 1.
fn quota_v2(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    cores(quota, period)
}

fn cores(quota: &str, period: &str) -> Option<f64> {
    let (quota, period) = (quota.parse::<u32>().ok()?, period.parse::<u32>().ok()?);
    (quota > 0 && period > 0).then(|| f64::from(quota) / f64::from(period))
}

fn throttled(stat: &str, field: &str) -> Option<f64> {
    let line = stat.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(' '))?;
    line.trim().parse().ok()
}

fn seconds(time: Timespec) -> f64 {
    // Exact to a nanosecond for the first 100 days, and as good as needed after them.
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &[u8] = b"30 1 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
        31 1 0:27 /docker/abc /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn every_level_up_to_the_root_is_looked_at_in_both_versions() {
        let groups = "4:memory:/other\n2:cpu,cpuacct:/a/b\n0::/docker/abc/job\n";
        let found = find(&Mounts::parse(MOUNTS), groups, "cpu");
        let v1 = ["/sys/fs/cgroup/cpu/a/b", "/sys/fs/cgroup/cpu/a", "/sys/fs/cgroup/cpu/"];
        let v2 = ["/sys/fs/cgroup/unified/job", "/sys/fs/cgroup/unified/"];
        let expected: Vec<_> = v1
            .into_iter()
            .map(|folder| Cgroup::V1(folder.into()))
            .chain(v2.into_iter().map(|folder| Cgroup::V2(folder.into())))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_fifth_of_a_core_is_read_in_both_versions() {
        assert_eq!(quota_v2("20000 100000\n"), Some(0.2));
        assert_eq!(quota_v1("20000\n", "100000\n"), Some(0.2));
        assert_eq!(quota_v2("max 100000\n"), None);
        assert_eq!(quota_v1("-1\n", "100000\n"), None);
    }

    #[test]
    fn withheld_time_is_read_from_its_own_line() {
        let stat = "nr_periods 5\nnr_throttled 2\nthrottled_time 1500000000\n";
        assert_eq!(throttled(stat, "throttled_time"), Some(1.5e9));
        assert_eq!(throttled(stat, "throttled_usec"), None);
    }

    #[test]
    fn cores_are_busy_for_whoever_does_not_give_way() {
        let parse = |line: &str| CoreTimes::parse(line, false);
        let before = parse("cpu  100 50 100 1000 10 5 5 0 0 0\ncpu0 1 2 3\n").unwrap();
        let after = parse("cpu  160 90 120 1060 20 10 10 5 7 0\n").unwrap();
        // 60 + 20 + 5 + 5 of 205.
        assert!((after.busy_share_since(&before) - 90.0 / 205.0).abs() < 1e-9);
        assert!((after.idle_share_since(&before) - 70.0 / 205.0).abs() < 1e-9);
        assert_eq!((before.busy_share_since(&after), before.cores()), (0.0, 1));
        assert_eq!(before.idle_share_since(&after), 0.0);
        assert_eq!([parse(""), parse("cpu 1 2 3"), parse("cpu a b c d e f g h")], [None; 3]);
        assert!(CoreTimes::now().is_some());
    }

    #[test]
    fn cores_are_busy_with_niced_work_for_whoever_is_niced_too() {
        let parse = |line: &str| CoreTimes::parse(line, true).unwrap();
        let before = parse("cpu  100 50 100 1000 10 5 5 0 0 0\n");
        let after = parse("cpu  110 230 100 1010 10 5 5 0 0 0\n");
        // 10 + 180 of 200.
        assert!((after.busy_share_since(&before) - 0.95).abs() < 1e-9);
        assert!((after.idle_share_since(&before) - 0.05).abs() < 1e-9);
    }

    #[test]
    fn a_process_gives_way_that_was_niced() {
        let before = gives_way();
        // A thread has a priority of its own, and so this test's has.
        std::thread::spawn(move || {
            rustix::process::setpriority_process(None, 10).unwrap();
            assert!(gives_way());
        })
        .join()
        .unwrap();
        assert_eq!(gives_way(), before);
    }

    #[test]
    fn this_process_has_some_core_and_uses_it() {
        assert!(available_cores() > 0.0);
        assert!(process_cpu_seconds() >= 0.0 && thread_cpu_seconds() >= 0.0);
    }
}
