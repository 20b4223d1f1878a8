//! What the computer says of itself: its name and its clock.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::Timestamp;

/// The computer's own name, for display.
#[must_use]
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The kernel and its version, such as `Linux 6.12.9`.
#[must_use]
pub fn kernel() -> String {
    let uname = rustix::system::uname();
    format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy())
}

/// What the maker calls the processor, where the system tells.
#[must_use]
pub fn processor() -> Option<String> {
    let told = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = told.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The time by the computer's clock, which may be wrong and may jump.
///
/// This is the one place that reads it: everything else is handed a clock. It is read through the C
/// library, so that tests can put another before it. Before 1970 it is taken for 1970.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the clock that everything is handed")]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let secs = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    Timestamp { secs, nanos: since.subsec_nanos() }
}

/// Which start of the computer this is; `None` where the system does not tell. Until the next one, nobody
/// sets what [`running`] tells.
#[must_use]
pub fn boot_id() -> Option<String> {
    let told = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(told.trim().to_owned())
}

/// How long the computer has run, the time that it slept included. Nobody sets it.
#[must_use]
pub fn running() -> Duration {
    let running = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let (secs, nanos) = (running.tv_sec.unsigned_abs(), running.tv_nsec.unsigned_abs());
    Duration::new(secs, u32::try_from(nanos).unwrap_or_default())
}

/// How long the computer has slept since it was started.
#[must_use]
pub fn slept() -> Duration {
    let awake = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let (secs, nanos) = (awake.tv_sec.unsigned_abs(), awake.tv_nsec.unsigned_abs());
    running().saturating_sub(Duration::new(secs, u32::try_from(nanos).unwrap_or_default()))
}

/// The addresses that this computer has, those of version 4 first; none where the system does not tell. `root` is `/` but
/// in tests.
#[must_use]
pub fn own_addresses(root: &Path) -> Vec<IpAddr> {
    let read = |name: &str| std::fs::read_to_string(root.join("proc/self/net").join(name));
    let (v4, v6) = (read("fib_trie").unwrap_or_default(), read("if_inet6").unwrap_or_default());
    let v4 = own_v4(&v4).into_iter().map(IpAddr::V4);
    v4.chain(own_v6(&v6).into_iter().map(IpAddr::V6)).collect()
}

/// Addresses and networks, each with its kinds of routes in lines of their own below it.
fn own_v4(table: &str) -> BTreeSet<Ipv4Addr> {
    let mut last = None;
    let own = table.lines().map(str::trim).filter_map(|line| {
        if line.starts_with(['|', '+']) {
            last = line.strip_prefix("|-- ").and_then(|address| address.parse().ok());
        }
        last.filter(|_| line == "/32 host LOCAL")
    });
    own.collect()
}

/// `address interface-number length scope flags interface`.
fn own_v6(table: &str) -> BTreeSet<Ipv6Addr> {
    let addresses = table.lines().filter_map(|line| line.split_whitespace().next());
    addresses.filter_map(|hex| u128::from_str_radix(hex, 16).ok()).map(Ipv6Addr::from).collect()
}
