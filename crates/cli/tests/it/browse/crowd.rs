//! Other users of the computer, who have no cookie and want all connections.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::place::Place;
use crate::house::{is_root, small_tree};

/// More than are served at the same time.
const MANY: usize = 100;
const OTHER: u32 = 65534;

/// Another user's program that holds connections.
struct Crowd(Child);

impl Crowd {
    fn at(address: &str) -> Self {
        let (host, port) = address.rsplit_once(':').expect("a port");
        let hold = format!(
            "for _ in {{1..{MANY}}}; do exec {{at}}<>/dev/tcp/{host}/{port}; done; echo; sleep 1000"
        );
        let mut command = Command::new("bash");
        command.args(["-c", &hold]).uid(OTHER).gid(OTHER).stdout(Stdio::piped());
        let mut crowd = Self(command.spawn().expect("it starts"));
        let mut line = String::new();
        let said = crowd.0.stdout.as_mut().expect("a pipe");
        BufReader::new(said).read_line(&mut line).expect("it connects");
        crowd
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn connections_of_another_user_leave_room_for_ones_own() {
    if !is_root("another user") {
        return;
    }
    let place = Place::new(small_tree);
    let mut browser = place.inside();
    let _crowd = Crowd::at(&place.address);
    let started = Instant::now();
    browser.get("/").expect(200);
    assert!(started.elapsed() < Duration::from_secs(5), "after {:?}", started.elapsed());
}

#[test]
fn a_connection_that_says_nothing_and_showed_nothing_is_dropped_soon() {
    let place = Place::new(small_tree);
    let mut silent = TcpStream::connect(&place.address).expect("it listens");
    silent.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
    let started = Instant::now();
    assert_eq!(silent.read(&mut [0]).expect("it is closed in time"), 0);
    assert!(started.elapsed() < Duration::from_secs(15), "after {:?}", started.elapsed());
    place.inside().get("/").expect(200);
}
