//! Audits, as who backs up sees them: nothing while the server has everything, and what it lost by name.

use std::fs;

use holdall_testkit::Random;

use crate::clocks::{at, has_faketime};
use crate::house::{Machine, Outcome, Server, files_below};

/// A clock that is so far ahead, as faketime is told.
const A_WEEK_ON: &str = "+8 days";
const TWO_WEEKS_ON: &str = "+16 days";

#[test]
fn a_server_that_lost_what_it_acknowledged_is_told_by_a_backup_a_week_later() {
    if !has_faketime() {
        return;
    }
    let machine = Machine::new();
    let data = machine.path("server");
    let mut server = Server::start(&data);
    machine.pair_with(&server);
    let source = machine.path("source");
    fs::create_dir(&source).unwrap();
    for number in 0..24 {
        let content = Random::new(number + 1).bytes(1_500_000);
        fs::write(source.join(format!("file-{number}")), content).unwrap();
    }
    let source = source.to_str().unwrap();
    let backup = |clock| Outcome::of(&mut at(clock, &machine.command(["backup", source, "-v"])));
    machine.ok(["backup", source]);
    // The round begins with the first backup that finds something remembered.
    machine.ok(["backup", source]);
    let sound = backup(A_WEEK_ON).expect(0);
    let told = "all that snapshots need are there";
    assert!(sound.stderr.contains(told), "{sound:#?}");

    server.process().terminate().unwrap();
    assert!(server.process().wait().unwrap().0.success());
    let (mut lost_bytes, address) = (0, server.address().to_owned());
    for file in files_below(&data.join("repositories")) {
        let len = file.metadata().unwrap().len();
        if len > 1_000_000 {
            lost_bytes += len;
            fs::remove_file(&file).unwrap();
        }
    }
    assert!(lost_bytes > 24 * 1_500_000, "{lost_bytes}");
    // What is still here would be sent again, and nothing would be lost.
    fs::remove_dir_all(source).unwrap();
    fs::create_dir(source).unwrap();
    let _again = Server::start_by(&mut Server::command_at(&address, &data), &data);
    let damaged = backup(TWO_WEEKS_ON).expect(20);
    assert!(!damaged.stderr.contains(told), "{damaged:#?}");
    let named = damaged.stderr.contains("no longer has what snapshots need");
    assert!(named && damaged.stderr.contains(source), "{damaged:#?}");
}
