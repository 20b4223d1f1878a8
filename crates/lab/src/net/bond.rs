//! Bonds: several links that the system shows as one, and which of them a stream takes.
//!
//! A bond does not divide a stream. It chooses a link for each by a hash, and what goes into the
//! hash decides whether two streams can use two links: by default hardware addresses alone do, so
//! that everything between two computers takes one path, however many streams and addresses there
//! are. What the kernel tells is in `/proc/net/bonding/NAME`
//! (Documentation/networking/bonding.rst).

use std::path::Path;

use super::paths::lower_interfaces;

/// Longest file that is read; a bond of 32 links has far less.
const MOST_BYTES: usize = 64 << 10;
/// A VLAN of a bridge over a bond is two above it; more is a loop or somebody's experiment.
const MOST_ABOVE: u32 = 8;

/// What the system tells of a bond.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct Bond {
    /// Its mode, such as `IEEE 802.3ad Dynamic link aggregation`.
    pub mode: String,
    /// What decides on the link of a stream, such as `layer2`; none in modes without.
    pub hash_policy: Option<String>,
    /// The links that it is made of, those that are up.
    pub links: Vec<String>,
    /// The links that are down.
    pub down: Vec<String>,
}

/// What goes into the choice of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chooses {
    ByHardware,
    ByAddress,
    ByPort,
    InTurn,
    OneOnly,
    Unknown,
}

impl Bond {
    /// The bond of that name, if it is one. `root` is `/` but in tests.
    pub fn read(root: &Path, name: &str) -> Option<Self> {
        let text = std::fs::read_to_string(root.join("proc/net/bonding").join(name)).ok()?;
        (text.len() <= MOST_BYTES).then(|| Self::parse(&text))
    }

    /// The bond that an interface is, or lies on, as a VLAN or a bridge does.
    pub fn below(root: &Path, interface: &str) -> Option<Self> {
        Self::below_within(root, interface, MOST_ABOVE)
    }

    fn below_within(root: &Path, interface: &str, deeper: u32) -> Option<Self> {
        Self::read(root, interface).or_else(|| {
            let deeper = deeper.checked_sub(1)?;
            let lower = lower_interfaces(&root.join("sys/class/net").join(interface));
            lower.iter().find_map(|name| Self::below_within(root, name, deeper))
        })
    }

    /// Its mode and what chooses a link, in words.
    pub fn words(&self) -> String {
        let policy = self.hash_policy.as_ref().map(|policy| format!(", {policy}"));
        format!("bond of {} ({}{})", self.links.join(", "), self.mode, policy.unwrap_or_default())
    }

    /// Reads `key: value` lines: of the bond first, then of each link.
    fn parse(text: &str) -> Self {
        let mut bond = Self::default();
        let mut link: Option<String> = None;
        for line in text.lines() {
            let Some((key, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            match (key.trim(), &link) {
                ("Bonding Mode", None) => bond.mode = value.to_owned(),
                ("Transmit Hash Policy", None) => {
                    // `layer2+3 (2)`: the word is enough.
                    bond.hash_policy = value.split_whitespace().next().map(str::to_owned);
                }
                ("Slave Interface", _) => link = Some(value.to_owned()),
                ("MII Status", Some(name)) => {
                    let list = if value == "up" { &mut bond.links } else { &mut bond.down };
                    list.push(name.clone());
                }
                _ => {}
            }
        }
        bond
    }

    fn chooses(&self) -> Chooses {
        let mode = self.mode.as_str();
        if mode.contains("active-backup") || mode.contains("broadcast") {
            return Chooses::OneOnly;
        }
        if mode.contains("round-robin") {
            return Chooses::InTurn;
        }
        match self.hash_policy.as_deref() {
            Some("layer2") => Chooses::ByHardware,
            Some("layer2+3" | "encap2+3") => Chooses::ByAddress,
            Some("layer3+4" | "encap3+4") => Chooses::ByPort,
            _ => Chooses::Unknown,
        }
    }

    /// What its mode and policy mean for several streams between two computers, a sentence each.
    pub fn advice(&self) -> Vec<String> {
        let mut said = Vec::new();
        if !self.down.is_empty() {
            said.push(format!("the bond's link {} is down", self.down.join(", ")));
        }
        let count = self.links.len();
        said.push(match self.chooses() {
            Chooses::OneOnly => format!(
                "the bond's mode ({}) sends over one of its links at a time: it makes nothing faster",
                self.mode
            ),
            _ if count < 2 => "the bond has only one link that is up".to_owned(),
            Chooses::ByHardware => "the bond's transmit hash policy is layer2: it looks at hardware \
                addresses and ignores IP addresses and ports, so that all streams between two \
                computers take one path; layer2+3 is needed (xmit_hash_policy=layer2+3, and the same \
                at the switch and at the other end), and two addresses at an end (--bind A,B)"
                .to_owned(),
            Chooses::ByAddress => "the bond's transmit hash policy is layer2+3: streams between the \
                same two addresses take one path; two addresses at an end can use two (--bind A,B)"
                .to_owned(),
            Chooses::ByPort => "the bond's transmit hash policy is layer3+4: each stream has a path \
                of its own, by chance the same one"
                .to_owned(),
            Chooses::InTurn => "the bond sends packets over its links in turn, which reorders them: \
                retransmits may eat what it gains"
                .to_owned(),
            Chooses::Unknown => format!(
                "the bond's mode is {}; how it divides streams is not known here",
                if self.mode.is_empty() { "unknown" } else { &self.mode }
            ),
        });
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 6.1 shows it, the details of 802.3ad left out.
    fn recorded(mode: &str, policy: &str, second: &str) -> String {
        format!(
            "Ethernet Channel Bonding Driver: v6.1.0-18-amd64\n\n\
             Bonding Mode: {mode}\n{policy}MII Status: up\nMII Polling Interval (ms): 100\n\
             Up Delay (ms): 0\nDown Delay (ms): 0\n\n\
             802.3ad info\nLACP active: on\nAggregator selection policy (ad_select): stable\n\n\
             Slave Interface: enp1s0\nMII Status: up\nSpeed: 2500 Mbps\nDuplex: full\n\
             Permanent HW addr: 00:11:22:33:44:55\nSlave queue ID: 0\n\n\
             Slave Interface: enp2s0\nMII Status: {second}\nSpeed: 2500 Mbps\nDuplex: full\n\
             Permanent HW addr: 00:11:22:33:44:56\nSlave queue ID: 0\n"
        )
    }

    const LACP: &str = "IEEE 802.3ad Dynamic link aggregation";

    fn advice(mode: &str, policy: &str) -> String {
        Bond::parse(&recorded(mode, policy, "up")).advice().join("\n")
    }

    #[test]
    fn mode_policy_and_links_are_read() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("proc/net/bonding");
        std::fs::create_dir_all(&folder).unwrap();
        let text = recorded(LACP, "Transmit Hash Policy: layer2+3 (2)\n", "down");
        std::fs::write(folder.join("bond0"), text).unwrap();
        let bond = Bond::read(root.path(), "bond0").unwrap();
        assert_eq!(bond.mode, LACP);
        assert_eq!(bond.hash_policy.as_deref(), Some("layer2+3"));
        assert_eq!(
            (bond.links.as_slice(), bond.down.as_slice()),
            (&["enp1s0".into()][..], &["enp2s0".into()][..])
        );
        assert_eq!(bond.advice()[0], "the bond's link enp2s0 is down");
        assert_eq!(bond.words(), format!("bond of enp1s0 ({LACP}, layer2+3)"));
        assert_eq!(Bond::read(root.path(), "bond1"), None);
    }

    #[test]
    fn a_bond_below_a_vlan_and_a_bridge_is_found_and_a_loop_ends() {
        let root = tempfile::tempdir().unwrap();
        let bonds = root.path().join("proc/net/bonding");
        std::fs::create_dir_all(&bonds).unwrap();
        std::fs::write(bonds.join("bond0"), recorded(LACP, "", "up")).unwrap();
        for (upper, lower) in [("br0", "bond0.10"), ("bond0.10", "bond0"), ("a", "b"), ("b", "a")] {
            let folder = root.path().join("sys/class/net").join(upper);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(format!("lower_{lower}")), "").unwrap();
        }
        let below = |name: &str| Bond::below(root.path(), name).map(|bond| bond.mode);
        assert_eq!(
            ["br0", "bond0.10", "bond0"].map(below),
            [(); 3].map(|()| Some(LACP.to_owned()))
        );
        assert_eq!(["a", "eth0"].map(below), [None, None]);
    }

    #[test]
    fn layer2_ignores_addresses_and_layer2_3_is_asked_for() {
        let said = advice(LACP, "Transmit Hash Policy: layer2 (0)\n");
        for words in ["ignores IP addresses", "one path", "layer2+3 is needed"] {
            assert!(said.contains(words), "{said}");
        }
        let said = advice(LACP, "Transmit Hash Policy: layer2+3 (2)\n");
        assert!(said.contains("between the same two addresses") && !said.contains("needed"));
        let said = advice("load balancing (xor)", "Transmit Hash Policy: layer3+4 (1)\n");
        assert!(said.contains("a path of its own"), "{said}");
    }

    #[test]
    fn modes_that_choose_no_link_by_hash_are_told() {
        let said = advice("fault-tolerance (active-backup)", "");
        assert!(said.contains("makes nothing faster"), "{said}");
        assert!(advice("load balancing (round-robin)", "").contains("in turn"));
        assert!(advice("transmit load balancing", "").contains("not known here"));
        assert!(Bond::parse("\0\0garbage").advice()[0].contains("only one link"));
    }
}
