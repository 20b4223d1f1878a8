//! What is made of an answer: a server, or nothing.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The version of what is announced.
pub(crate) const VERSION: &str = "1";
/// Most servers that are kept; of more, it is said that there were.
const MOST_SERVERS: usize = 64;
/// Most addresses of one.
const MOST_ADDRESSES: usize = 8;
/// Most characters of a name; the rest of a longer one is left out.
const MOST_LETTERS: usize = 64;
/// Groups of a fingerprint, and letters of each.
const GROUPS: usize = 8;
const GROUP_LETTERS: usize = 4;

/// A server that was announced. None of it is proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundServer {
    /// What it calls itself, at most 64 characters. Hostile: it may hold any of them.
    pub name: String,
    /// Where it says it is, IPv4 first; at least one and at most 8. None is of loopback.
    pub addresses: Vec<IpAddr>,
    /// The port, not 0.
    pub port: u16,
    /// The fingerprint that it says it has: eight groups of four of `a-z2-7`.
    pub fingerprint: String,
}

impl FoundServer {
    /// `HOST:PORT` of each address, as an invite has them.
    pub fn hosts(&self) -> Vec<String> {
        self.addresses.iter().map(|ip| SocketAddr::new(*ip, self.port).to_string()).collect()
    }

    /// Reads what was announced: its addresses, port, and texts by their keys. `None` for what is not announced by a
    /// holdall of this version, or leads nowhere.
    ///
    /// Untrusted: all of it.
    pub(crate) fn read<'a>(
        addresses: impl Iterator<Item = IpAddr>,
        port: u16,
        text: impl Fn(&str) -> Option<&'a str>,
    ) -> Option<Self> {
        let fingerprint = text("id").filter(|id| is_fingerprint(id))?.to_owned();
        let name: String = text("name")?.chars().take(MOST_LETTERS).collect();
        let addresses = usable(addresses);
        let is_one = text("v") == Some(VERSION) && port != 0 && !addresses.is_empty();
        (is_one && !name.trim().is_empty()).then_some(Self { name, addresses, port, fingerprint })
    }
}

/// Those that lead to another computer, the ones that need no interface named first.
fn usable(addresses: impl Iterator<Item = IpAddr>) -> Vec<IpAddr> {
    let leads_there = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => {
            !ip.is_loopback() && !ip.is_unspecified() && !ip.is_multicast() && !ip.is_broadcast()
        }
        // One of a link alone says nothing without the link's name, which each computer gives.
        IpAddr::V6(ip) => {
            !ip.is_loopback() && !ip.is_unspecified() && !ip.is_multicast() && !is_of_link(ip)
        }
    };
    let mut usable: Vec<_> = addresses.filter(leads_there).take(1000).collect();
    usable.sort_unstable();
    usable.dedup();
    usable.truncate(MOST_ADDRESSES);
    usable
}

fn is_of_link(ip: &Ipv6Addr) -> bool {
    ip.is_unicast_link_local() || ip.to_ipv4_mapped().is_some()
}

fn is_fingerprint(text: &str) -> bool {
    let is_group = |group: &str| {
        group.len() == GROUP_LETTERS
            && group.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'2'..=b'7'))
    };
    text.split('-').count() == GROUPS && text.split('-').all(is_group)
}

/// The servers that were found, in the order of their names; at most 64.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    by_label: BTreeMap<String, FoundServer>,
    /// Whether more than 64 were announced.
    pub are_more: bool,
}

impl Found {
    /// Those that were found, in the order of their names and fingerprints.
    pub fn servers(&self) -> Vec<&FoundServer> {
        let mut servers: Vec<_> = self.by_label.values().collect();
        servers.sort_by_key(|server| (&server.name, &server.fingerprint));
        servers
    }

    /// Takes what was announced under a label, in the place of what was before.
    ///
    /// Untrusted: the label is at most 255 bytes, since DNS has no longer ones.
    pub(crate) fn take(&mut self, label: &str, server: Option<FoundServer>) {
        let is_known = self.by_label.contains_key(label);
        match server {
            None => drop(self.by_label.remove(label)),
            Some(server) if is_known || self.by_label.len() < MOST_SERVERS => {
                self.by_label.insert(label.to_owned(), server);
            }
            Some(_) => self.are_more = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FINGERPRINT: &str = "aaaa-bbbb-cccc-dddd-2222-3333-4444-7777";

    fn texts<'a>(pairs: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<&'a str> {
        |key| pairs.iter().find(|(known, _)| *known == key).map(|(_, value)| *value)
    }

    fn read(addresses: &[&str], port: u16, pairs: &[(&str, &str)]) -> Option<FoundServer> {
        let addresses = addresses.iter().map(|ip| ip.parse().unwrap());
        FoundServer::read(addresses, port, texts(pairs))
    }

    #[test]
    fn a_server_has_its_addresses_with_the_port_and_none_that_lead_nowhere() {
        let of = ["fd00::5", "127.0.0.1", "192.0.2.7", "fe80::1", "0.0.0.0", "224.0.0.251", "::1"];
        let pairs = [("v", "1"), ("id", FINGERPRINT), ("name", "attic")];
        let server = read(&of, 7443, &pairs).unwrap();
        assert_eq!(server.hosts(), ["192.0.2.7:7443", "[fd00::5]:7443"]);
        assert_eq!((&server.name[..], &server.fingerprint[..]), ("attic", FINGERPRINT));
    }

    #[test]
    fn what_no_holdall_of_this_version_announces_is_none() {
        let good = [("v", "1"), ("id", FINGERPRINT), ("name", "attic")];
        assert!(read(&["192.0.2.7"], 7443, &good).is_some());
        for (bad, value) in [
            ("v", "2"),
            ("v", ""),
            ("id", "aaaa"),
            ("name", " "),
            ("id", &FINGERPRINT.to_uppercase()),
        ] {
            let pairs = good.map(|(key, good)| (key, if key == bad { value } else { good }));
            assert_eq!(read(&["192.0.2.7"], 7443, &pairs), None, "{bad}={value}");
        }
        assert_eq!(read(&["192.0.2.7"], 0, &good), None);
        assert_eq!(read(&["127.0.0.1", "fe80::1"], 7443, &good), None);
        assert_eq!(read(&["192.0.2.7"], 7443, &good[..2]), None);
    }

    #[test]
    fn of_a_thousand_servers_so_many_are_kept_and_one_that_changes_stays_one() {
        let mut found = Found::default();
        let of =
            |ip, name: &str| read(&[ip], 7443, &[("v", "1"), ("id", FINGERPRINT), ("name", name)]);
        for number in 0..1000 {
            let server = of("192.0.2.7", &format!("server {number:03}"));
            found.take(&format!("label {number}"), server);
        }
        assert_eq!((found.servers().len(), found.are_more), (MOST_SERVERS, true));
        found.take("label 5", of("192.0.2.8", "another"));
        assert_eq!(
            (found.servers().len(), &found.servers()[0].name[..]),
            (MOST_SERVERS, "another")
        );
        found.take("label 5", None);
        assert_eq!(found.servers().len(), MOST_SERVERS - 1);
    }

    proptest! {
        #[test]
        fn whatever_is_announced_is_bounded(
            name: String,
            long in "[a\u{202e}\n]{0,300}",
            id in "[a-z2-7]{4}(-[a-z2-7]{4}){7}|\\PC*",
            addresses: Vec<[u8; 16]>,
            port: u16,
        ) {
            for name in [name, long] {
                let pairs = [("v", "1"), ("id", &id), ("name", &name)];
                let addresses = addresses.iter().map(|ip| IpAddr::from(*ip));
                if let Some(server) = FoundServer::read(addresses, port, texts(&pairs)) {
                    prop_assert!(server.name.chars().count() <= MOST_LETTERS);
                    prop_assert!((1..=MOST_ADDRESSES).contains(&server.addresses.len()));
                    prop_assert!(is_fingerprint(&server.fingerprint) && server.port == port);
                }
            }
        }
    }
}
