//! Audits, as who backs up sees them: nothing while the server has everything, and what it lost by name.

use std::fs;
use std::path::PathBuf;

use holdall_testkit::Random;

use crate::clocks::{at, has_faketime};
use crate::house::{Machine, Outcome, Server, files_below};

const ALL_THERE: &str = "all that snapshots need are there";
const LOST: &str = "no longer has what snapshots need";
/// A pack of content has at least this; tails, and packs of nodes, have less here.
const PACK_BYTES: u64 = 40_000_000;

/// A server, and a machine that has backed up files of 1.5 MB each.
struct House {
    machine: Machine,
    server: Server,
    source: PathBuf,
}

impl House {
    fn with_files(files: u64) -> Self {
        let machine = Machine::new();
        let server = Server::start(&machine.path("server"));
        machine.pair_with(&server);
        let source = machine.path("source");
        fs::create_dir(&source).unwrap();
        for number in 0..files {
            let content = Random::new(number + 1).bytes(1_500_000);
            fs::write(source.join(format!("file-{number}")), content).unwrap();
        }
        // The round begins with it.
        machine.ok(["backup", source.to_str().unwrap()]);
        Self { machine, server, source }
    }

    /// Backs up so many days later, by the machine's clock.
    fn back_up_on(&self, day: u64) -> Outcome {
        let source = self.source.to_str().unwrap();
        let command = self.machine.command(["backup", source, "-v"]);
        Outcome::of(&mut at(&format!("+{day} days"), &command))
    }

    /// The files of the repository that have at least so many bytes.
    fn stored(&self, at_least_bytes: u64) -> Vec<PathBuf> {
        let mut files = files_below(&self.machine.path("server/repositories"));
        files.retain(|file| file.metadata().unwrap().len() >= at_least_bytes);
        files.sort();
        files
    }

    /// The server loses files while it is off. What they held is not here either: it would be sent again, and
    /// nothing would be lost.
    fn lose(&mut self, files: &[PathBuf]) {
        self.server.process().terminate().unwrap();
        assert!(self.server.process().wait().unwrap().0.success());
        files.iter().for_each(|file| fs::remove_file(file).unwrap());
        fs::remove_dir_all(&self.source).unwrap();
        fs::create_dir(&self.source).unwrap();
        fs::write(self.source.join("left"), "nothing else").unwrap();
        let (address, data) = (self.server.address().to_owned(), self.machine.path("server"));
        self.server = Server::start_by(&mut Server::command_at(&address, &data), &data);
    }
}

#[test]
fn a_server_that_lost_what_it_acknowledged_is_told_by_a_backup_a_week_later() {
    if !has_faketime() {
        return;
    }
    let mut house = House::with_files(24);
    let sound = house.back_up_on(7).expect(0);
    assert!(sound.stderr.contains(ALL_THERE), "{sound:#?}");

    let lost = house.stored(1_000_000);
    let lost_bytes: u64 = lost.iter().map(|file| file.metadata().unwrap().len()).sum();
    assert!(lost_bytes > 24 * 1_500_000, "{lost_bytes}");
    house.lose(&lost);
    let damaged = house.back_up_on(14).expect(20);
    assert!(!damaged.stderr.contains(ALL_THERE), "{damaged:#?}");
    let source = house.source.to_str().unwrap();
    let named = damaged.stderr.contains(LOST) && damaged.stderr.contains(source);
    assert!(named, "{damaged:#?}");
}

#[test]
fn one_lost_pack_of_many_is_told_within_a_week_of_backups_a_day_and_nothing_before_it_is_lost() {
    if !has_faketime() {
        return;
    }
    let mut house = House::with_files(180);
    for day in 1..=7 {
        let sound = house.back_up_on(day).expect(0);
        assert!(sound.stderr.contains(ALL_THERE), "on day {day}: {sound:#?}");
    }
    let packs = house.stored(PACK_BYTES);
    assert!(packs.len() >= 5, "{packs:?}");
    house.lose(&packs[2..3]);
    let mut days = 8..=14;
    let told = days.find_map(|day| {
        let outcome = house.back_up_on(day);
        (outcome.code != Some(0)).then_some(outcome)
    });
    let told = told.expect("one of seven backups tells it").expect(20);
    let line = told.stderr.lines().find(|line| line.contains(LOST)).expect("what it is");
    assert!(line.contains(house.source.join("file-").to_str().unwrap()), "{line}");
}
