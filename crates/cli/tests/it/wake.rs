//! A server that sleeps, and is woken by a hook before a backup: by the real program for it.

use std::fs;
use std::net::UdpSocket;
use std::process::Command;

use holdall_testkit::is_there;

use crate::house::{Machine, Server, text};

/// The hardware address of the server's network card.
const CARD: [u8; 6] = [0x02, 0, 0, 0, 0, 0x2a];

#[test]
fn a_server_that_sleeps_is_woken_and_waited_for() {
    let has_program = Command::new("wakeonlan").arg("--version").output().is_ok();
    if !is_there("wakeonlan", has_program) {
        return;
    }
    let machine = Machine::new();
    let data = machine.path("data");
    let mut server = Server::start(&data);
    machine.pair_with(&server);
    fs::create_dir(machine.path("tree")).unwrap();
    fs::write(machine.path("tree/a"), "a").unwrap();
    let address = server.address().to_owned();
    server.process().kill().unwrap();

    let card = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (port, tree) = (card.local_addr().unwrap().port(), machine.path("tree"));
    let config = format!(
        "[sets.home]\npaths = [{:?}]\nretry_for = \"3m\"\n[sets.home.hooks]\n\
         before = \"wakeonlan -i 127.0.0.1 -p {port} 02:00:00:00:00:2a\"\n",
        text(&tree)
    );
    fs::write(machine.path("config/config.toml"), config).unwrap();
    let woken = std::thread::spawn(move || {
        let mut packet = [0; 200];
        let length = card.recv(&mut packet).unwrap();
        assert_eq!(packet[..length], [&[0xff; 6][..], &CARD.repeat(16)].concat());
        Server::start_by(&mut Server::command_at(&address, &data), &data)
    });
    machine.ok(["agent", "run", "home"]);
    let _server = woken.join().unwrap();
}
