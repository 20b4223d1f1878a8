//! Two network namespaces joined by shaped links: a network of its own on one computer.
//!
//! ```text
//! hbNNNc                              hbNNNs          NNN: the id of this process
//!   link0 10.77.0.2 ------------ 10.77.0.1 link0      tbf at both ends
//!   link1 10.77.1.2 ------------ 10.77.1.1 link1
//! ```
//!
//! A client that binds to its address on link 1 and calls the server's address on link 0 would
//! still send over link 0, the only one that leads there; so the client routes by source address.
//! The server answers to the client's address, which is on the link that the call came from.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::Side;
use super::kind::Rate;
use crate::command::line;
use crate::stage::Wire;

const PREFIX: &str = "hb";

/// The namespaces; they go when this goes.
pub(crate) struct Namespaces {
    client: String,
    server: String,
    count: usize,
    server_address: String,
}

impl Namespaces {
    /// Makes both, with `count` links of `rate` between them.
    ///
    /// # Errors
    ///
    /// Without root, or if `ip` or `tc` fails; nothing is left behind.
    pub(crate) fn make(count: usize, rate: Rate) -> Result<Self> {
        ensure!(
            rustix::process::geteuid().is_root(),
            "a shaped link needs network namespaces, and they need root"
        );
        clear_leftovers()?;
        let name = |end| format!("{PREFIX}{}{end}", std::process::id());
        let made = Self {
            client: name('c'),
            server: name('s'),
            count,
            server_address: address(0, Side::Server),
        };
        made.set_up(rate).context("cannot make the link (Debian package iproute2)")?;
        Ok(made)
    }

    fn set_up(&self, rate: Rate) -> Result<()> {
        let (client, server) = (&self.client, &self.server);
        for namespace in [client, server] {
            line(&format!("ip netns add {namespace}"))?;
            line(&format!("ip -n {namespace} link set lo up"))?;
        }
        for at in 0..self.count {
            let peer = format!("peer name link{at} netns {server}");
            line(&format!("ip link add link{at} netns {client} type veth {peer}"))?;
            for (namespace, side) in [(client, Side::Client), (server, Side::Server)] {
                let address = address(at, side);
                line(&format!("ip -n {namespace} addr add {address}/24 dev link{at}"))?;
                line(&format!("ip -n {namespace} link set link{at} up"))?;
                let shaping = rate.shaping();
                line(&format!("tc -n {namespace} qdisc add dev link{at} root {shaping}"))?;
            }
            let (from, via) = (address(at, Side::Client), address(at, Side::Server));
            let table = 100 + at;
            line(&format!("ip -n {client} rule add from {from} table {table}"))?;
            let route = format!("default via {via} dev link{at} table {table}");
            line(&format!("ip -n {client} route add {route}"))?;
        }
        Ok(())
    }

    /// What comes before a command that is to run at `side`.
    pub(crate) fn prefix(&self, side: Side) -> Vec<OsString> {
        ["ip", "netns", "exec", self.name(side)].map(OsString::from).to_vec()
    }

    fn name(&self, side: Side) -> &str {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }

    /// The server's address on the first link.
    pub(crate) fn server_address(&self) -> &str {
        &self.server_address
    }

    /// The client's address on every link.
    pub(crate) fn client_addresses(&self) -> Vec<String> {
        (0..self.count).map(|at| address(at, Side::Client)).collect()
    }

    /// What went over the client's ends of all links until now.
    ///
    /// # Errors
    ///
    /// If the counters cannot be read.
    pub(crate) fn wire(&self) -> Result<Wire> {
        let table = line(&format!("ip netns exec {} cat /proc/net/dev", self.client))?;
        parse_wire(&table).context("an odd /proc/net/dev")
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for namespace in [&self.client, &self.server] {
            if Path::new("/run/netns").join(namespace).exists()
                && let Err(error) = line(&format!("ip netns del {namespace}"))
            {
                println!("{error:#}");
            }
        }
    }
}

/// The address of `side` on a link.
pub(super) fn address(link: usize, side: Side) -> String {
    let host = match side {
        Side::Server => 1,
        Side::Client => 2,
    };
    format!("10.77.{link}.{host}")
}

/// Takes away the namespaces of runs that were killed; those of runs that go on stay.
fn clear_leftovers() -> Result<()> {
    for entry in line("ip netns list")?.lines() {
        let name = entry.split_whitespace().next().unwrap_or_default();
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(['c', 's']));
        let owner = owner.and_then(|digits| digits.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            line(&format!("ip netns del {name}"))?;
        }
    }
    Ok(())
}

/// The sums of all links in a text as of `/proc/net/dev`.
fn parse_wire(table: &str) -> Option<Wire> {
    let mut sum = Wire { sent_bytes: 0, received_bytes: 0 };
    for row in table.lines() {
        let Some((name, figures)) = row.split_once(':') else { continue };
        if name.trim().starts_with("link") {
            let mut figures = figures.split_whitespace();
            sum.received_bytes += figures.next()?.parse::<u64>().ok()?;
            sum.sent_bytes += figures.nth(7)?.parse::<u64>().ok()?;
        }
    }
    Some(sum)
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
        let wire = Wire { sent_bytes: 2300, received_bytes: 110 };
        assert_eq!(parse_wire(table), Some(wire));
        assert_eq!(parse_wire("link0: odd"), None);
    }
}
