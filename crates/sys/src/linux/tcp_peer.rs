//! Whose the other end of a connection within this computer is.

use std::fs;
use std::net::{IpAddr, SocketAddr};

/// What the system calls a connection that is open.
const ESTABLISHED: &str = "01";

/// The user who opened the connection from `peer` to `own`, both on this computer; nothing if that cannot be told, as once
/// it is closed.
#[must_use]
pub fn peer_user(own: SocketAddr, peer: SocketAddr) -> Option<u32> {
    let table = if own.is_ipv4() { "/proc/net/tcp" } else { "/proc/net/tcp6" };
    let table = fs::read_to_string(table).ok()?;
    let (from, to) = (written(peer), written(own));
    table.lines().find_map(|line| user_of(line, &from, &to))
}

/// The user of a line such as `0: 0100007F:8A7C 0100007F:1D14 01 00000000:00000000 00:00000000 00000000 1000 0 131`. One
/// that is closed has no user, and says 0.
fn user_of(line: &str, from: &str, to: &str) -> Option<u32> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    match fields[..] {
        [_, own, other, ESTABLISHED, _, _, _, user, ..] if own == from && other == to => {
            user.parse().ok()
        }
        _ => None,
    }
}

/// An address as the system writes it: words in the order of this computer's bytes.
fn written(address: SocketAddr) -> String {
    let bytes = match address.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let words = bytes.chunks_exact(4).filter_map(|word| <[u8; 4]>::try_from(word).ok());
    let words: String = words.map(|word| format!("{:08X}", u32::from_ne_bytes(word))).collect();
    format!("{words}:{:04X}", address.port())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_user_of_a_connection_is_known_while_it_is_open() {
        for listen in ["127.0.0.1:0", "[::1]:0"] {
            // Not every computer has both.
            let Ok(listener) = TcpListener::bind(listen) else { continue };
            let own = listener.local_addr().unwrap();
            let client = TcpStream::connect(own).unwrap();
            let (server, peer) = listener.accept().unwrap();
            assert_eq!(peer_user(own, peer), Some(crate::users::effective_uid()));
            drop((client, server));
            assert_eq!(peer_user(own, peer), None);
        }
    }
}
