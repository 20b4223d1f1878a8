//! Two network namespaces joined by shaped links: a network of its own on one computer.
//!
//! ```text
//! hlNNN-Nc                            hlNNN-Ns        NNN-N: the id of this process, a number
//!   link0 10.77.0.2 ------------ 10.77.0.1 link0      tbf at both ends
//!   link1 10.77.1.2 ------------ 10.77.1.1 link1
//! ```
//!
//! A client that binds to its address on link 1 and calls the server's address on link 0 would
//! still send over link 0, the only one that leads there; so the client routes by source address.
//! The server answers to the client's address, which is on the link that the call came from.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

const PREFIX: &str = "hl";

/// The client's address on a link once it has moved.
const MOVED_HOST: u8 = 77;

static MADE: AtomicU32 = AtomicU32::new(0);

/// Whose end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Where clients run.
    Client,
    /// Where servers run.
    Server,
}

/// The namespaces and the links between them; they go when this goes.
#[derive(Debug)]
pub struct Links {
    name: String,
    count: usize,
}

impl Links {
    /// Makes both namespaces, with a link for each rate, in bits a second.
    ///
    /// # Errors
    ///
    /// `PermissionDenied` without root; what `ip` or `tc` (Debian package iproute2) said, and then
    /// nothing is left behind.
    pub fn of_rates(bits_per_second: &[u64]) -> io::Result<Self> {
        if !rustix::process::geteuid().is_root() {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "a shaped link needs network namespaces, and they need root",
            ));
        }
        clear_leftovers()?;
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        let made = Self { name, count: bits_per_second.len() };
        made.set_up(bits_per_second)?;
        Ok(made)
    }

    fn set_up(&self, rates: &[u64]) -> io::Result<()> {
        let (client, server) = (&self.namespace(End::Client), &self.namespace(End::Server));
        for namespace in [client, server] {
            line(&format!("ip netns add {namespace}"))?;
            line(&format!("ip -n {namespace} link set lo up"))?;
        }
        for (at, rate) in rates.iter().enumerate() {
            let peer = format!("peer name link{at} netns {server}");
            line(&format!("ip link add link{at} netns {client} type veth {peer}"))?;
            for (namespace, end) in [(client, End::Client), (server, End::Server)] {
                let address = Self::address(at, end);
                line(&format!("ip -n {namespace} addr add {address}/24 dev link{at}"))?;
                line(&format!("ip -n {namespace} link set link{at} up"))?;
                let shaping = shaping(*rate);
                line(&format!("tc -n {namespace} qdisc add dev link{at} root {shaping}"))?;
            }
            let (from, via) = (Self::address(at, End::Client), Self::address(at, End::Server));
            let table = 100 + at;
            line(&format!("ip -n {client} rule add from {from} table {table}"))?;
            let route = format!("default via {via} dev link{at} table {table}");
            line(&format!("ip -n {client} route add {route}"))?;
        }
        Ok(())
    }

    fn namespace(&self, end: End) -> String {
        match end {
            End::Client => format!("{}c", self.name),
            End::Server => format!("{}s", self.name),
        }
    }

    /// What comes before a command that is to run at `end`.
    #[must_use]
    pub fn prefix(&self, end: End) -> Vec<OsString> {
        ["ip", "netns", "exec", &self.namespace(end)].map(OsString::from).to_vec()
    }

    /// The address of an end of a link. Servers that listen on that of link 0 are reached over all.
    #[must_use]
    pub fn address(link: usize, end: End) -> String {
        let host = match end {
            End::Server => 1,
            End::Client => 2,
        };
        format!("10.77.{link}.{host}")
    }

    /// The client's address on every link.
    #[must_use]
    pub fn client_addresses(&self) -> Vec<String> {
        (0..self.count).map(|at| Self::address(at, End::Client)).collect()
    }

    /// Has the client's end of a link keep what it cannot send yet for up to so many milliseconds, as modems do.
    ///
    /// # Errors
    ///
    /// What `tc` says.
    pub fn lengthen_queue(
        &self,
        link: usize,
        bits_per_second: u64,
        latency_ms: u64,
    ) -> io::Result<()> {
        let client = self.namespace(End::Client);
        let tbf = format!("tbf rate {bits_per_second}bit burst 16384 latency {latency_ms}ms");
        line(&format!("tc -n {client} qdisc replace dev link{link} root {tbf}"))?;
        Ok(())
    }

    /// Takes the cable of a link out, or puts it back.
    ///
    /// # Errors
    ///
    /// What `ip` said.
    pub fn plug(&self, link: usize, is_in: bool) -> io::Result<()> {
        let state = if is_in { "up" } else { "down" };
        line(&format!("ip -n {} link set link{link} {state}", self.namespace(End::Client)))?;
        Ok(())
    }

    /// Gives the client another address on a link, as another network does, and takes away the one that
    /// it had.
    ///
    /// # Errors
    ///
    /// What `ip` said; the client may have no address then.
    pub fn move_client(&self, link: usize) -> io::Result<()> {
        let client = self.namespace(End::Client);
        line(&format!("ip -n {client} addr flush dev link{link}"))?;
        line(&format!("ip -n {client} addr add 10.77.{link}.{MOVED_HOST}/24 dev link{link}"))?;
        Ok(())
    }

    /// Bytes that the client's ends of all links sent and received until now, headers included.
    ///
    /// # Errors
    ///
    /// What the system says, `InvalidData` for a table that cannot be read.
    pub fn carried_bytes(&self) -> io::Result<(u64, u64)> {
        let table =
            line(&format!("ip netns exec {} cat /proc/net/dev", self.namespace(End::Client)));
        carried_bytes(&table?).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        for namespace in [self.namespace(End::Client), self.namespace(End::Server)] {
            if Path::new("/run/netns").join(&namespace).exists() {
                // What stays is taken away before the next ones are made.
                let _ = line(&format!("ip netns del {namespace}"));
            }
        }
    }
}

/// How tc's `tbf` is to hold a rate: the slower, the smaller the bursts and the longer the queue,
/// which has to hold a few packets at least.
fn shaping(bits_per_second: u64) -> String {
    let burst_bytes = (bits_per_second / 8 / 100).clamp(4 << 10, 256 << 10);
    let latency_ms = match bits_per_second {
        100_000_000.. => 20,
        5_000_000.. => 50,
        500_000.. => 200,
        _ => 400,
    };
    format!("tbf rate {bits_per_second}bit burst {burst_bytes} latency {latency_ms}ms")
}

/// Takes away the namespaces of processes that were killed; those of others stay.
fn clear_leftovers() -> io::Result<()> {
    for entry in line("ip netns list")?.lines() {
        let name = entry.split_whitespace().next().unwrap_or_default();
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
        let owner = owner.and_then(|(digits, _)| digits.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            line(&format!("ip netns del {name}"))?;
        }
    }
    Ok(())
}

/// The sums of all links in a text as of `/proc/net/dev`: sent and received.
fn carried_bytes(table: &str) -> Option<(u64, u64)> {
    let (mut sent_bytes, mut received_bytes) = (0, 0);
    for row in table.lines() {
        let Some((name, figures)) = row.split_once(':') else { continue };
        if name.trim().starts_with("link") {
            let mut figures = figures.split_whitespace();
            received_bytes += figures.next()?.parse::<u64>().ok()?;
            sent_bytes += figures.nth(7)?.parse::<u64>().ok()?;
        }
    }
    Some((sent_bytes, received_bytes))
}

/// What a command of plain words printed.
fn line(words: &str) -> io::Result<String> {
    let mut parts = words.split(' ');
    let output = Command::new(parts.next().unwrap_or_default()).args(parts).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("{words}: {}", said.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_are_counted_and_all_of_them() {
        let table = "Inter-|   Receive    |  Transmit\n face |bytes packets\n    \
                     lo: 9 9 0 0 0 0 0 0 9 9 0 0 0 0 0 0\n \
                     link0: 100 1 0 0 0 0 0 0 2000 2 0 0 0 0 0 0\n \
                     link1:  10 1 0 0 0 0 0 0 300 2 0 0 0 0 0 0\n";
        assert_eq!(carried_bytes(table), Some((2300, 110)));
        assert_eq!(carried_bytes("link0: odd"), None);
    }

    #[test]
    fn slow_links_have_small_bursts_and_long_queues() {
        let fast = "tbf rate 1000000000bit burst 262144 latency 20ms";
        assert_eq!(shaping(1_000_000_000), fast);
        assert_eq!(shaping(64_000), "tbf rate 64000bit burst 4096 latency 400ms");
    }
}
