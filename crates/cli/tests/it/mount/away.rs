//! A server that is started again, and one that stays away.

use std::fs::{self, File};
use std::io::Read;

use holdall_testkit::Random;

use super::newest;
use super::place::{Mounted, can_mount};
use crate::house::{Machine, Server, text};

const CONTENT_BYTES: usize = 24 << 20;

/// A machine with a server that has a snapshot of a large file and of small ones.
fn served() -> (Machine, Server, Vec<u8>) {
    let machine = Machine::new();
    let server = Server::start(&machine.path("data"));
    machine.pair_with(&server);
    let (source, content) = (machine.path("source"), Random::new(7).bytes(CONTENT_BYTES));
    fs::create_dir(&source).unwrap();
    fs::write(source.join("large"), &content).unwrap();
    for number in 0..200 {
        let small = &content[number * 10_000..][..10_000];
        fs::write(source.join(format!("small-{number:03}")), small).unwrap();
    }
    machine.ok(["backup", text(&source)]);
    (machine, server, content)
}

#[test]
fn a_read_goes_on_where_it_was_once_the_server_is_started_again() {
    if !can_mount() {
        return;
    }
    let (machine, mut server, content) = served();
    let mounted = Mounted::start(&machine, &[]);
    let source = newest(&mounted, &machine.path("source"));
    let mut file = File::open(source.join("large")).unwrap();
    let mut read = vec![0; 1 << 20];
    file.read_exact(&mut read).unwrap();
    let address = server.address().to_owned();
    server.process().kill().unwrap();
    let (begun, begins) = std::sync::mpsc::channel();
    let reading = std::thread::spawn(move || {
        begun.send(()).unwrap();
        file.read_to_end(&mut read).map(|_| read)
    });
    begins.recv().unwrap();
    let data = machine.path("data");
    let _server = Server::start_by(&mut Server::command_at(&address, &data), &data);
    assert!(reading.join().unwrap().unwrap() == content);
    for number in 0..200 {
        let small = fs::read(source.join(format!("small-{number:03}"))).unwrap();
        assert!(small == content[number * 10_000..][..10_000]);
    }
    let (code, told) = mounted.end();
    assert_eq!(code, Some(0), "{told}");
}

#[test]
fn a_server_that_stays_away_is_an_error_for_who_reads_and_told_once() {
    if !can_mount() {
        return;
    }
    let (machine, mut server, content) = served();
    let mounted = Mounted::start(&machine, &["--retry-for", "1s"]);
    let source = newest(&mounted, &machine.path("source"));
    assert!(fs::read(source.join("small-000")).unwrap() == content[..10_000]);
    let address = server.address().to_owned();
    server.process().kill().unwrap();
    for _ in 0..2 {
        let mut file = File::open(source.join("large")).unwrap();
        let error = file.read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()));
    }
    // What was listed is still seen.
    assert!(fs::metadata(source.join("small-001")).unwrap().is_file());
    let data = machine.path("data");
    let _server = Server::start_by(&mut Server::command_at(&address, &data), &data);
    assert!(fs::read(source.join("large")).unwrap() == content);
    let (code, told) = mounted.end();
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.starts_with("note: the server at "), "{told}");
}
