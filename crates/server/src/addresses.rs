//! Where machines can reach this server, as far as it can tell by itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;

use holdall_format::is_unseen;
use holdall_sys::host::own_addresses;

use crate::ServerError;

/// More addresses than this help nobody: a machine tries one after the other.
const MOST_OWN: usize = 5;

/// This computer's name, or "holdall".
pub(crate) fn host_name() -> String {
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy().into_owned();
    match name.is_empty() || name.len() > 200 || name.chars().any(is_unseen) {
        true => "holdall".into(),
        false => name,
    }
}

/// `HOST:PORT` of a server that listens there, the likeliest first: the address itself if it is
/// one, else those from which this computer would reach the world, or all that it has where it would not, and its name.
pub(crate) fn reachable_at(listen: SocketAddr) -> Vec<String> {
    if !listen.ip().is_unspecified() {
        return vec![listen.to_string()];
    }
    let port = listen.port();
    // Addresses for documentation, which belong to nobody.
    let somewhere = Ipv4Addr::new(192, 0, 2, 1);
    let somewhere_6 = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    let outward = outward_address(Ipv4Addr::UNSPECIFIED.into(), somewhere.into());
    let outward_6 = outward_address(Ipv6Addr::UNSPECIFIED.into(), somewhere_6.into());
    let outward_6 = outward_6.filter(|_| listen.is_ipv6());
    let mut found: Vec<_> = [outward, outward_6].into_iter().flatten().collect();
    if found.is_empty() {
        found = reached_by_neighbours(own_addresses(Path::new("/")), listen.is_ipv6());
    }
    let found = found.into_iter().map(|ip| SocketAddr::new(ip, port).to_string());
    found.chain([format!("{}:{port}", host_name())]).collect()
}

/// Those of the addresses of a computer without a way into the world that others can connect to; that of the computer
/// itself if there is none. One that counts within a link alone says nothing without the link's name, which each computer gives.
fn reached_by_neighbours(mut own: Vec<IpAddr>, listens_by_v6: bool) -> Vec<IpAddr> {
    own.retain(|ip| match ip {
        IpAddr::V4(ip) => !ip.is_loopback() && !ip.is_link_local(),
        IpAddr::V6(ip) => listens_by_v6 && !ip.is_loopback() && !ip.is_unicast_link_local(),
    });
    own.truncate(MOST_OWN);
    match own.is_empty() {
        true => vec![Ipv4Addr::LOCALHOST.into()],
        false => own,
    }
}

/// The local address of a route; nothing is sent.
fn outward_address(from: IpAddr, to: IpAddr) -> Option<IpAddr> {
    let socket = UdpSocket::bind((from, 0)).ok()?;
    socket.connect((to, 9)).ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_unspecified() && !ip.is_loopback()).then_some(ip)
}

/// `HOST:PORT` as it is, or `HOST` with that port.
///
/// # Errors
/// [`ServerError::Refused`] for what is neither.
pub(crate) fn with_port(text: &str, port: u16) -> Result<String, ServerError> {
    let candidates = [text.to_owned(), format!("{text}:{port}")];
    let found = candidates.into_iter().find(|candidate| is_host_and_port(candidate));
    found.ok_or_else(|| ServerError::refused(format!("{text:?} is not HOST:PORT")))
}

/// Checks that a text is `HOST:PORT`; an IPv6 address stands in brackets.
pub fn is_host_and_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let in_brackets = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match in_brackets {
        Some(address) => address.split('%').next().is_some_and(|ip| ip.parse::<Ipv6Addr>().is_ok()),
        None => !host.is_empty() && !host.contains([':', '[', ']']),
    };
    let plain = |letter: char| letter.is_ascii_alphanumeric() || ".-_:[]%".contains(letter);
    let port = port.parse::<u16>().is_ok_and(|port| port != 0);
    port && is_host && text.len() <= 255 && host.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_was_chosen_is_the_only_one() {
        let listen = "127.0.0.1:7443".parse().unwrap();
        assert_eq!(reachable_at(listen), ["127.0.0.1:7443"]);
    }

    #[test]
    fn every_address_that_is_found_has_the_port() {
        let found = reachable_at("0.0.0.0:7443".parse().unwrap());
        assert!(found.len() >= 2, "{found:?}");
        assert!(found.iter().all(|address| is_host_and_port(address)), "{found:?}");
        assert!(found.iter().all(|address| address.ends_with(":7443")), "{found:?}");
    }

    /// Seen: a server in a network without a router was said to be at 127.0.0.1 alone.
    #[test]
    fn without_a_way_into_the_world_all_that_neighbours_reach_is_named() {
        let ips =
            |texts: &[&str]| texts.iter().map(|ip| ip.parse().unwrap()).collect::<Vec<IpAddr>>();
        let own = ["127.0.0.1", "10.77.0.2", "169.254.3.4", "::1", "fd77::2", "fe80::2"];
        assert_eq!(reached_by_neighbours(ips(&own), false), ips(&["10.77.0.2"]));
        assert_eq!(reached_by_neighbours(ips(&own), true), ips(&["10.77.0.2", "fd77::2"]));
        assert_eq!(reached_by_neighbours(ips(&["127.0.0.1"]), true), ips(&["127.0.0.1"]));
    }

    #[test]
    fn what_is_no_host_and_port_is_refused() {
        for good in ["host:1", "192.0.2.1:7443", "[2001:db8::1]:7443", "[fe80::1%eth0]:1"] {
            assert!(is_host_and_port(good), "{good}");
        }
        for bad in [
            "host",
            ":1",
            "host:0",
            "host:99999",
            "a b:1",
            "host:1\n",
            "::1",
            "::1:7443",
            "[::1]",
            "[a]:1",
        ] {
            assert!(!is_host_and_port(bad), "{bad}");
        }
    }
}
