//! What the system tells of the link that leads to another computer: negotiated speed, duplex, MTU.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use holdall_sys::host::own_addresses;

use super::Bond;

/// What a link is, where the system tells.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct Link {
    /// The interface's name.
    pub interface: String,
    /// The negotiated speed, in Mb/s.
    pub speed_mbits: Option<u64>,
    /// `full` or `half`.
    pub duplex: Option<String>,
    /// Most bytes of one packet.
    pub mtu_bytes: Option<u64>,
    /// Whether it is Wi-Fi, whose speed changes all the time.
    pub wireless: bool,
    /// The bond that it is, or lies on.
    pub bond: Option<Bond>,
}

impl Link {
    /// What the system tells of `interface`. `root` is `/` but in tests.
    pub fn read(root: &Path, interface: &str) -> Self {
        let folder = root.join("sys/class/net").join(interface);
        // An interface that is down, or a virtual one, gives an error, -1 or `unknown`.
        let text = |name: &str| {
            let text = std::fs::read_to_string(folder.join(name)).ok()?;
            Some(text.trim().to_owned())
        };
        let number = |name: &str| text(name)?.parse().ok().filter(|&number: &u64| number > 0);
        Self {
            interface: interface.to_owned(),
            speed_mbits: number("speed"),
            duplex: text("duplex").filter(|duplex| duplex != "unknown"),
            mtu_bytes: number("mtu"),
            wireless: folder.join("wireless").exists() || folder.join("phy80211").exists(),
            bond: Bond::below(root, interface),
        }
    }

    /// Every link of this computer that is up, by name; not the one to itself. `root` is `/` but in tests.
    pub fn all(root: &Path) -> Vec<Self> {
        let folder = root.join("sys/class/net");
        let found = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let names: BTreeSet<_> =
            found.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        let is_up = |name: &String| {
            let state = std::fs::read_to_string(folder.join(name).join("operstate"));
            name != OWN_INTERFACE && state.is_ok_and(|state| state.trim() != "down")
        };
        names.iter().filter(|name| is_up(name)).map(|name| Self::read(root, name)).collect()
    }

    /// What it is, in words.
    pub fn words(&self) -> String {
        let mut words = self.interface.clone();
        if self.wireless {
            words += ", Wi-Fi";
        }
        if let Some(speed) = self.speed_mbits {
            words += &format!(", {speed} Mb/s");
        }
        if let Some(duplex) = &self.duplex {
            words += &format!(", {duplex} duplex");
        }
        if let Some(mtu) = self.mtu_bytes {
            words += &format!(", MTU {mtu}");
        }
        if let Some(bond) = &self.bond {
            words += &format!(", {}", bond.words());
        }
        words
    }

    /// What of it holds things back, a sentence each.
    pub fn advice(&self) -> Vec<String> {
        let mut said = self.bond.as_ref().map(Bond::advice).unwrap_or_default();
        if self.duplex.as_deref() == Some("half") {
            said.push(format!(
                "{} negotiated half duplex: a cable, or a port that is set by hand; both ends should \
                 negotiate",
                self.interface
            ));
        }
        if let Some(speed @ ..1000) = self.speed_mbits.filter(|_| !self.wireless) {
            said.push(format!(
                "{} negotiated {speed} Mb/s: look at cable, port and switch if it can do more",
                self.interface
            ));
        }
        said
    }
}

impl Link {
    /// Whether it leads nowhere but to this computer itself.
    pub fn is_own(&self) -> bool {
        self.interface == OWN_INTERFACE
    }
}

/// What the system calls the interface to this computer itself.
const OWN_INTERFACE: &str = "lo";

/// The interface that leads to `peer`, by the kernel's tables of routes. `root` is `/` but in tests.
///
/// Rules that choose a table by the address that a packet comes from are not followed: what bound
/// addresses really take, [`super::Paths`] counts.
pub fn interface_to(root: &Path, peer: IpAddr) -> Option<String> {
    let peer = peer.to_canonical();
    let read = |name: &str| std::fs::read_to_string(root.join("proc/self/net").join(name)).ok();
    // Whatever interface has an address of this computer, nothing goes over it to get there.
    if peer.is_loopback() || own_addresses(root).contains(&peer) {
        return Some(OWN_INTERFACE.to_owned());
    }
    match peer {
        IpAddr::V4(peer) => best(routes_v4(&read("route")?, peer)),
        IpAddr::V6(peer) => best(routes_v6(&read("ipv6_route")?, peer)),
    }
}

/// The interfaces that bytes to `peer` may go over, by the kernel's tables of routes: `lo` alone if `peer` is this
/// computer, and else those with a route there and those whose network an address of `bound` is in. `None` where
/// the system does not tell. `root` is `/` but in tests.
pub(super) fn interfaces_to(
    root: &Path,
    peer: IpAddr,
    bound: &[IpAddr],
) -> Option<BTreeSet<String>> {
    let narrowest = interface_to(root, peer)?;
    if narrowest == OWN_INTERFACE {
        return Some(BTreeSet::from([narrowest]));
    }
    let read = |name: &str| std::fs::read_to_string(root.join("proc/self/net").join(name)).ok();
    let (v4, v6) = (read("route").unwrap_or_default(), read("ipv6_route").unwrap_or_default());
    let routes = |peer: IpAddr| match peer.to_canonical() {
        IpAddr::V4(peer) => routes_v4(&v4, peer),
        IpAddr::V6(peer) => routes_v6(&v6, peer),
    };
    let of_bound = bound.iter().filter_map(|&address| best(routes(address)));
    let all = routes(peer).into_iter().map(|(_, _, interface)| interface);
    Some(all.chain(of_bound).collect())
}

/// `Iface Destination Gateway Flags RefCnt Use Metric Mask ...`, addresses in hexadecimal in the
/// byte order of the computer.
fn routes_v4(table: &str, peer: Ipv4Addr) -> Vec<Fitting> {
    let fitting = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let hex = |at: usize| u32::from_str_radix(fields.get(at)?, 16).ok();
        let (destination, mask) = (hex(1)?.to_ne_bytes(), hex(7)?.to_ne_bytes());
        let metric: u32 = fields.get(6)?.parse().ok()?;
        let fits = peer.octets().iter().zip(mask).zip(destination).all(|((p, m), d)| p & m == d);
        let length = mask.iter().map(|byte| byte.count_ones()).sum::<u32>();
        let interface = (*fields.first()?).to_owned();
        fits.then_some((length, Reverse(metric), interface))
    });
    fitting.collect()
}

/// `destination length source length gateway metric refcount use flags interface`.
fn routes_v6(table: &str, peer: Ipv6Addr) -> Vec<Fitting> {
    let fitting = table.lines().filter_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let destination = u128::from_str_radix(fields.first()?, 16).ok()?;
        let length =
            u32::from_str_radix(fields.get(1)?, 16).ok().filter(|&length| length <= 128)?;
        let metric = u32::from_str_radix(fields.get(5)?, 16).ok()?;
        let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
        let interface = (*fields.get(9)?).to_owned();
        // The table ends with what is not routed at all, over `lo`.
        let fits = u128::from(peer) & mask == destination & mask && interface != "lo";
        fits.then_some((length, Reverse(metric), interface))
    });
    fitting.collect()
}

/// A route that fits: the length of its mask, its metric, its interface.
type Fitting = (u32, Reverse<u32>, String);

/// The narrowest, and of several the one with the smallest metric.
fn best(fitting: Vec<Fitting>) -> Option<String> {
    let narrowest = fitting.into_iter().max_by_key(|(length, metric, _)| (*length, *metric));
    narrowest.map(|(_, _, interface)| interface)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn root_with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        root
    }

    #[test]
    fn a_link_is_read_as_far_as_the_system_tells() {
        let root = root_with(&[
            ("sys/class/net/eth0/speed", "100\n"),
            ("sys/class/net/eth0/duplex", "half\n"),
            ("sys/class/net/eth0/mtu", "1500\n"),
            ("sys/class/net/wlan0/mtu", "1500\n"),
            ("sys/class/net/wlan0/wireless/beacon", "0\n"),
            ("sys/class/net/veth0/speed", "-1\n"),
            ("sys/class/net/veth0/duplex", "unknown\n"),
        ]);
        let eth = Link::read(root.path(), "eth0");
        assert_eq!(eth.words(), "eth0, 100 Mb/s, half duplex, MTU 1500");
        assert_eq!(eth.advice().len(), 2, "{:?}", eth.advice());
        let wlan = Link::read(root.path(), "wlan0");
        assert_eq!((wlan.words().as_str(), wlan.advice().len()), ("wlan0, Wi-Fi, MTU 1500", 0));
        assert_eq!(Link::read(root.path(), "veth0").words(), "veth0");
    }

    #[test]
    fn the_narrowest_route_leads_there() {
        // 0.0.0.0/0 over eth0, 10.77.0.0/24 over link0, 10.77.0.0/16 over link1 (little-endian).
        let table = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\n\
            eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\n\
            link0\t00004D0A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\n\
            link1\t00004D0A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\n\
            wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\nodd\n";
        let v6 = "00000000000000000000000000000000 00 0 00 0 00000400 1 0 00000003 eth0\n\
            fd770000000000000000000000000000 40 0 00 0 00000100 1 0 00000001 link0\n\
            00000000000000000000000000000000 00 0 00 0 ffffffff 1 0 00200200 lo\n";
        let root = root_with(&[("proc/self/net/route", table), ("proc/self/net/ipv6_route", v6)]);
        let to = |peer: &str| interface_to(root.path(), peer.parse().unwrap());
        for (peer, interface) in [
            ("10.77.0.1", "link0"),
            ("10.77.9.1", "link1"),
            ("8.8.8.8", "eth0"),
            ("127.0.0.1", "lo"),
            ("fd77::1", "link0"),
            ("2001:db8::1", "eth0"),
        ] {
            assert_eq!(to(peer).as_deref(), Some(interface), "{peer}");
        }
        assert_eq!(interface_to(Path::new("/nowhere"), "10.0.0.1".parse().unwrap()), None);

        // Bytes may go over any with a route there, and over those of addresses that are bound.
        let all = |peer: &str, bound: &[&str]| {
            let bound: Vec<_> = bound.iter().map(|address| address.parse().unwrap()).collect();
            interfaces_to(root.path(), peer.parse().unwrap(), &bound).unwrap()
        };
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(all("8.8.8.8", &[]), set(&["eth0", "wlan0"]));
        assert_eq!(all("8.8.8.8", &["10.77.0.5"]), set(&["eth0", "link0", "wlan0"]));
        assert_eq!(all("2001:db8::1", &[]), set(&["eth0"]));
        assert_eq!(all("127.0.0.1", &["10.77.0.5"]), set(&["lo"]));
        assert_eq!(interfaces_to(Path::new("/nowhere"), "10.0.0.1".parse().unwrap(), &[]), None);
    }

    #[test]
    fn an_address_of_this_computer_is_reached_over_lo_whatever_interface_has_it() {
        let route = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\n\
            eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\n";
        // The network's own address is a leaf, too.
        let trie = "Main:\n  +-- 192.0.2.0/24 2 0 2\n     +-- 192.0.2.0/30 2 0 2\n        \
            |-- 192.0.2.0\n           /24 link UNICAST\n        |-- 192.0.2.2\n           \
            /32 host LOCAL\n     |-- 192.0.2.255\n        /32 link BROADCAST\n";
        let v6 = "fd770000000000000000000000000002 04 40 00 82     eth0\n\
            00000000000000000000000000000001 01 80 10 80       lo\nodd\n";
        let v6_route = "fd770000000000000000000000000000 40 0 00 0 00000100 1 0 00000001 eth0\n";
        let root = root_with(&[
            ("proc/self/net/route", route),
            ("proc/self/net/fib_trie", trie),
            ("proc/self/net/if_inet6", v6),
            ("proc/self/net/ipv6_route", v6_route),
        ]);
        for (peer, interface) in [
            ("192.0.2.2", "lo"),
            ("::ffff:192.0.2.2", "lo"),
            ("192.0.2.1", "eth0"),
            ("192.0.2.0", "eth0"),
            ("192.0.2.255", "eth0"),
            ("fd77::2", "lo"),
            ("fd77::1", "eth0"),
        ] {
            let found = interface_to(root.path(), peer.parse().unwrap());
            assert_eq!(found.as_deref(), Some(interface), "{peer}");
        }
    }
}
