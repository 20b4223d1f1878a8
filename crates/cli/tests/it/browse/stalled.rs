//! A download that is not taken: the repository is for a backup meanwhile.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::place::Place;
use crate::house::text;
use holdall_testkit::Random;

/// More than a socket and what is read ahead hold.
const LARGE_BYTES: usize = 40 << 20;
/// When a backup has to be let in.
const FREE_WITHIN: Duration = Duration::from_secs(30);

#[test]
fn a_download_that_is_not_taken_keeps_no_backup_out_and_goes_on_afterwards() {
    let large = Random::new(3).bytes(LARGE_BYTES);
    let place = Place::new(|source| fs::write(source.join("large"), &large).expect("a file"));
    let browser = place.inside();
    let mut tcp = TcpStream::connect(&place.address).expect("it listens");
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\nConnection: close\r\n\r\n",
        place.at("get", "/large"),
        place.address,
        browser.cookie.as_deref().expect("a cookie")
    );
    tcp.write_all(request.as_bytes()).expect("it takes requests");
    let mut got = vec![0; 100_000];
    tcp.read_exact(&mut got).expect("it begins");

    let (repo, small) = (place.machine.path("repo"), place.machine.path("small"));
    fs::create_dir(&small).expect("a folder");
    let (mut in_use, started) = (Vec::new(), Instant::now());
    loop {
        assert!(started.elapsed() < FREE_WITHIN, "{in_use:?}");
        let backup = place.machine.run(["backup", "-r", text(&repo), text(&small)]);
        match backup.code {
            Some(11) => in_use.push(backup.stderr),
            _ => break drop(backup.expect(0)),
        }
    }
    let number = place.process.id().to_string();
    let names = |said: &String| {
        said.contains("in use by `holdall browse`, process") && said.contains(&number)
    };
    assert!(in_use.iter().all(names), "{in_use:?}");
    tcp.read_to_end(&mut got).expect("it goes on");
    let head = got.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    assert!(got[head + 4..] == large, "it is what was backed up");
}
