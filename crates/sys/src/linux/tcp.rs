//! What the kernel counted of a TCP connection.
//!
//! Bytes that wait in a connection wait for the path or for whoever is to take them, and only the sender's kernel
//! knows for which: the receiver says with each acknowledgement how much room it has.

#![allow(unsafe_code, reason = "the kernel is handed an address")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

pub use super::tcp_peer::peer_user;

/// How much of the kernel's `struct tcp_info` is asked for: up to `tcpi_sndbuf_limited`.
const INFO_BYTES: usize = 192;
/// Where in it are the microseconds from a packet to its acknowledgement, smoothed, and the least of them.
const TRIP_AT: usize = 68;
const LEAST_TRIP_AT: usize = 148;
/// Where in it are the microseconds with bytes under way, those of them without room at the receiver, and
/// those without room for more in the socket.
const BUSY_AT: usize = 168;
const NO_ROOM_THERE_AT: usize = 176;
const NO_ROOM_HERE_AT: usize = 184;

/// For how long a connection had bytes under way that the other end had room for: the path carried them.
/// Over a path that is full it is nearly all of the time, to a receiver that is slower than the path little.
///
/// # Errors
/// What the system says, such as `ENOPROTOOPT` for what is no TCP; [`io::ErrorKind::Unsupported`] where it does
/// not count this, as Linux before 4.10.
pub fn carrying(connection: impl AsFd) -> io::Result<Duration> {
    let info = info(connection)?;
    let micros = |at| micros(&info, at);
    let no_room = micros(NO_ROOM_THERE_AT) + micros(NO_ROOM_HERE_AT);
    Ok(Duration::from_micros(micros(BUSY_AT).saturating_sub(no_room)))
}

/// For how long packets of a connection wait on their way at the moment: how much longer than the least it takes until
/// they are acknowledged.
///
/// # Errors
/// As for [`carrying`].
pub fn waiting(connection: impl AsFd) -> io::Result<Duration> {
    let info = info(connection)?;
    let micros = |at: usize| {
        let bytes = info.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
    };
    let (trip, least) = (micros(TRIP_AT), micros(LEAST_TRIP_AT));
    // Nothing was acknowledged yet.
    let is_known = least != u32::MAX;
    Ok(Duration::from_micros(if is_known { trip.saturating_sub(least).into() } else { 0 }))
}

/// The kernel's `struct tcp_info` of a connection.
fn info(connection: impl AsFd) -> io::Result<[u8; INFO_BYTES]> {
    let mut info = [0_u8; INFO_BYTES];
    let mut length = INFO_BYTES as libc::socklen_t;
    // SAFETY: `info` lives through the call, and `length` says how many bytes of it may be written.
    let failed = unsafe {
        libc::getsockopt(
            connection.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    } != 0;
    if failed {
        return Err(io::Error::last_os_error());
    }
    if (length as usize) < INFO_BYTES {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(info)
}

/// The number of 64 bits at that place.
fn micros(info: &[u8; INFO_BYTES], at: usize) -> u64 {
    info.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn bytes_that_the_receiver_has_no_room_for_are_not_carried() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let _receiver = listener.accept().unwrap();
        assert!(carrying(&sender).unwrap() < Duration::from_millis(50));
        sender.set_nonblocking(true).unwrap();
        let full = sender.write_all(&vec![0; 64 << 20]).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        std::thread::sleep(Duration::from_millis(600));
        let carried = carrying(&sender).unwrap();
        assert!(carried < Duration::from_millis(400), "{carried:?} of 600 ms without room");
    }

    /// The path is one of [`PATH_BYTES_PER_SECOND`]: over loopback alone the bytes are there within the few ticks of
    /// the clock that the kernel counts by.
    #[test]
    fn bytes_that_wait_for_the_path_are_carried() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        pace(&sender, PATH_BYTES_PER_SECOND);
        let (mut receiver, _) = listener.accept().unwrap();
        let taking = std::thread::spawn(move || std::io::copy(&mut receiver, &mut io::sink()));
        sender.write_all(&vec![0; 4 << 20]).unwrap();
        sender.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(taking.join().unwrap().unwrap(), 4 << 20);
        let carried = carrying(&sender).unwrap();
        assert!(
            carried > Duration::from_millis(50),
            "{carried:?} of what takes a quarter of a second"
        );
    }

    const PATH_BYTES_PER_SECOND: u32 = 16 << 20;

    /// Has the kernel send no faster.
    fn pace(connection: &TcpStream, bytes_per_second: u32) {
        // SAFETY: the value lives through the call, and its size goes with it.
        let failed = unsafe {
            libc::setsockopt(
                connection.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_MAX_PACING_RATE,
                (&raw const bytes_per_second).cast(),
                size_of::<u32>() as libc::socklen_t,
            )
        };
        assert_eq!(failed, 0, "{}", io::Error::last_os_error());
    }

    #[test]
    fn packets_over_loopback_do_not_wait() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        for _ in 0..100 {
            sender.write_all(&[0; 2896]).unwrap();
            std::io::Read::read_exact(&mut receiver, &mut [0; 2896]).unwrap();
        }
        assert!(waiting(&sender).unwrap() < Duration::from_millis(50));
    }

    #[test]
    fn what_is_no_tcp_has_no_such_count() {
        let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(carrying(&datagrams).is_err() && waiting(&datagrams).is_err());
    }
}
