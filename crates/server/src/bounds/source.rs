//! Where a connection comes from, as far as limits and counts tell addresses apart.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// An IPv4 address, or the /64 of an IPv6 address: whoever has one address of it has all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Source(IpAddr);

impl From<IpAddr> for Source {
    fn from(ip: IpAddr) -> Self {
        Self(match ip.to_canonical() {
            IpAddr::V4(ip) => ip.into(),
            IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
        })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V4(ip) => ip.fmt(out),
            IpAddr::V6(ip) => write!(out, "{ip}/64"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_are_one_source_and_mapped_ones_are_what_they_map() {
        let shown = |ip: &str| Source::from(ip.parse::<IpAddr>().unwrap()).to_string();
        assert_eq!(shown("10.0.0.7"), "10.0.0.7");
        assert_eq!(shown("::ffff:10.0.0.7"), "10.0.0.7");
        assert_eq!(shown("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
        assert_eq!(shown("2001:db8:1:2:ffff::"), "2001:db8:1:2::/64");
    }
}
