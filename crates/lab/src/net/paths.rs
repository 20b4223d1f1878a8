//! Which interfaces bytes really went over: their counters before and after.
//!
//! What routes, rules and a bond's hash decide can be foretold only by who knows all of them, at
//! the switch too. The counters of `/sys/class/net` say what came of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::Direction;

/// A path that carried less than this is not in use.
const IN_USE: f64 = 0.1;

/// What went over each interface since it was made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Paths(BTreeMap<String, Counters>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Counters {
    sent_bytes: u64,
    received_bytes: u64,
}

/// What one interface had of all that went over the wire.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct PathShare {
    /// The interface.
    pub interface: String,
    /// Its share of all bytes, from 0 to 1.
    pub share: f64,
}

impl Paths {
    /// What the system counts now, of interfaces that are a wire: not of bonds, VLANs, tunnels and
    /// others that lie on another, where the same bytes are counted again. `root` is `/` but in tests.
    pub fn now(root: &Path) -> Self {
        let Ok(folder) = std::fs::read_dir(root.join("sys/class/net")) else {
            return Self::default();
        };
        let found = folder.flatten().filter_map(|entry| {
            let (name, path) = (entry.file_name().into_string().ok()?, entry.path());
            let count = |file: &str| {
                let text = std::fs::read_to_string(path.join("statistics").join(file)).ok()?;
                text.trim().parse().ok()
            };
            let sent_bytes = count("tx_bytes").filter(|_| is_wire(&path))?;
            Some((name, Counters { sent_bytes, received_bytes: count("rx_bytes")? }))
        });
        Self(found.collect())
    }

    /// The same of interfaces that bytes may go over which leave by one of `leading`, and of those that these lie on.
    /// What other programs send over the others meanwhile, to themselves or to another network, is no path of ours.
    pub fn among(mut self, root: &Path, leading: &BTreeSet<String>) -> Self {
        let mut reached = leading.clone();
        let mut waiting: Vec<_> = leading.iter().cloned().collect();
        while let Some(name) = waiting.pop() {
            let below = lower_interfaces(&root.join("sys/class/net").join(name));
            waiting.extend(below.into_iter().filter(|name| reached.insert(name.clone())));
        }
        self.0.retain(|name, _| reached.contains(name));
        self
    }

    /// Which shares the interfaces had of what went in `direction` after `earlier`, the largest
    /// first.
    pub fn shares_since(&self, earlier: &Self, direction: Direction) -> Vec<PathShare> {
        let of = |counters: &Counters| match direction {
            Direction::Send => counters.sent_bytes,
            Direction::Receive => counters.received_bytes,
        };
        let before = |name: &String| earlier.0.get(name).map_or(0, of);
        let moved = self.0.iter().map(|(name, now)| (name, of(now).saturating_sub(before(name))));
        let moved: Vec<_> = moved.filter(|(_, bytes)| *bytes > 0).collect();
        let all = moved.iter().map(|(_, bytes)| bytes).sum::<u64>().max(1) as f64;
        let share = |(name, bytes): &(&String, u64)| PathShare {
            interface: (*name).clone(),
            share: *bytes as f64 / all,
        };
        let mut shares: Vec<_> = moved.iter().map(share).collect();
        shares.sort_by(|a, b| b.share.total_cmp(&a.share));
        shares
    }
}

/// Whether an interface's bytes go over no other interface, as far as its folder tells.
fn is_wire(interface: &Path) -> bool {
    let has = |name: &str| interface.join(name).exists();
    let kind = std::fs::read_to_string(interface.join("type")).unwrap_or_default();
    // Ethernet and Wi-Fi, InfiniBand, and the computer's own (if_arp.h); tunnels have other types, but
    // for those of a process.
    let is_kind_of_wire = matches!(kind.trim(), "1" | "32" | "772");
    let lies_on_another = !lower_interfaces(interface).is_empty();
    is_kind_of_wire && !lies_on_another && !has("tun_flags") && !has("bonding") && !has("bridge")
}

/// The names of those that an interface lies on, by its folder below `/sys/class/net`.
pub(super) fn lower_interfaces(interface: &Path) -> Vec<String> {
    let Ok(folder) = std::fs::read_dir(interface) else { return Vec::new() };
    let names = folder.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| Some(name.strip_prefix("lower_")?.to_owned())).collect()
}

/// Those that carried more than what happens to go there meanwhile.
pub(super) fn in_use(shares: &[PathShare]) -> impl Iterator<Item = &PathShare> {
    shares.iter().filter(|path| path.share >= IN_USE)
}

/// Says plainly over how many paths `streams` streams went, which need not be the same both ways.
pub(super) fn say(shares: &[PathShare], streams: usize, direction: Direction) -> Option<String> {
    let way = match direction {
        Direction::Send => "sending",
        Direction::Receive => "receiving",
    };
    let used: Vec<_> = in_use(shares).collect();
    let names = |paths: &[&PathShare]| {
        let one = |path: &&PathShare| format!("{} ({:.0} %)", path.interface, path.share * 100.0);
        paths.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    match (used.as_slice(), streams) {
        ([], _) | (_, ..2) => None,
        // Nobody has a second path to their own computer.
        ([one], _) if one.interface == "lo" => None,
        ([one], _) => Some(format!(
            "{way}: all {streams} streams took one path: {} carried {:.0} % of the bytes",
            one.interface,
            one.share * 100.0
        )),
        (several, _) => Some(format!(
            "{way}: the {streams} streams took {} paths: {}",
            several.len(),
            names(several)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(root: &Path, interface: &str, sent: u64, received: u64) {
        let folder = root.join("sys/class/net").join(interface).join("statistics");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("tx_bytes"), format!("{sent}\n")).unwrap();
        fs::write(folder.join("rx_bytes"), format!("{received}\n")).unwrap();
        fs::write(folder.join("../type"), "1\n").unwrap();
    }

    #[test]
    fn two_streams_over_one_link_of_a_bond_are_told() {
        let root = tempfile::tempdir().unwrap();
        let links = |a: u64, b: u64| {
            write(root.path(), "eth0", a, 0);
            write(root.path(), "eth1", b, 900);
            write(root.path(), "bond0", a + b, 900);
            fs::create_dir_all(root.path().join("sys/class/net/bond0/bonding")).unwrap();
            Paths::now(root.path())
        };
        let before = links(1000, 5000);
        let shares = links(1960, 5040).shares_since(&before, Direction::Send);
        assert_eq!((shares.len(), shares[0].interface.as_str()), (2, "eth0"));
        let said = say(&shares, 2, Direction::Send).unwrap();
        assert_eq!(said, "sending: all 2 streams took one path: eth0 carried 96 % of the bytes");
        assert_eq!(say(&shares, 1, Direction::Send), None);
        let own = PathShare { interface: "lo".into(), share: 1.0 };
        assert_eq!(say(&[own], 4, Direction::Send), None);

        let before = links(0, 0);
        let shares = links(400, 600).shares_since(&before, Direction::Send);
        assert_eq!(
            say(&shares, 4, Direction::Receive).unwrap(),
            "receiving: the 4 streams took 2 paths: eth1 (60 %), eth0 (40 %)"
        );
        assert_eq!(links(400, 600).shares_since(&links(0, 0), Direction::Receive), []);
    }

    #[test]
    fn what_other_programs_send_over_other_interfaces_is_no_path() {
        let root = tempfile::tempdir().unwrap();
        let names = ["eth0", "eth1", "lo", "veth7"];
        names.iter().for_each(|name| write(root.path(), name, 0, 0));
        let bond = root.path().join("sys/class/net/bond0");
        fs::create_dir_all(bond.join("bonding")).unwrap();
        ["lower_eth0", "lower_eth1"]
            .iter()
            .for_each(|name| fs::write(bond.join(name), "").unwrap());
        let leading = |name: &str| BTreeSet::from([name.to_owned()]);
        let before = Paths::now(root.path());
        for (name, sent) in [("eth0", 38), ("eth1", 0), ("lo", 62), ("veth7", 20)] {
            write(root.path(), name, sent, 0);
        }
        let shares = |name| {
            let now = Paths::now(root.path()).among(root.path(), &leading(name));
            now.shares_since(&before, Direction::Send)
        };
        let all_of = |name: &str| [PathShare { interface: name.to_owned(), share: 1.0 }];
        // Over a link by itself, over one of a bond, and to this computer itself.
        assert_eq!(shares("eth0"), all_of("eth0"));
        assert_eq!(shares("bond0"), all_of("eth0"));
        assert_eq!(shares("lo"), all_of("lo"));
    }

    #[test]
    fn what_lies_on_another_interface_is_no_path_of_its_own() {
        let root = tempfile::tempdir().unwrap();
        let at = |file: &str| root.path().join("sys/class/net").join(file);
        let names = ["eth0", "eth0.10", "macvlan0", "wg0", "tap0", "br0"];
        names.iter().for_each(|name| write(root.path(), name, 0, 0));
        fs::write(at("eth0.10/lower_eth0"), "").unwrap();
        fs::write(at("macvlan0/lower_eth0"), "").unwrap();
        fs::write(at("wg0/type"), "65534\n").unwrap();
        fs::write(at("tap0/tun_flags"), "0x1002\n").unwrap();
        fs::create_dir(at("br0/bridge")).unwrap();
        let before = Paths::now(root.path());
        names.iter().for_each(|name| fs::write(at(name).join("statistics/tx_bytes"), "9").unwrap());
        let shares = Paths::now(root.path()).shares_since(&before, Direction::Send);
        assert_eq!(shares, [PathShare { interface: "eth0".into(), share: 1.0 }]);
    }
}
