//! Rules count what was imported by its dates, in a directory and on a server.

use std::fs;

use super::Place;
use crate::clocks::{can_let_days_pass, days_later};
use crate::house::{Outcome, Server, text};

/// A day on which the lock of a server holds none of the snapshots any more.
const UNLOCKED: u64 = 40;

/// A repository with a snapshot of each of five years.
fn five_years() -> Option<Place> {
    let place = Place::new()?;
    fs::create_dir(&place.source).unwrap();
    for year in 2018..2023 {
        fs::write(place.source.join("file"), format!("of {year}")).unwrap();
        place.back_up(year, &[]);
    }
    Some(place)
}

#[test]
fn five_years_are_five_years_in_a_directory() {
    let Some(place) = five_years() else { return };
    place.import();
    let forgotten = |rules: &[&str]| {
        let args = [&["forget", "-n", "--json", "-r", text(&place.to)], rules].concat();
        let judged = place.machine.ok(args).of_type("snapshot");
        judged.iter().filter(|one| one["forgotten"] == true).count()
    };
    assert_eq!(forgotten(&["--keep-yearly", "5"]), 0);
    assert_eq!(forgotten(&["--keep-yearly", "3"]), 2);
}

/// All that came to the server came within a minute, which is one day, one week and one month.
#[test]
fn five_years_are_five_years_on_a_server_that_dates_arrivals() {
    if !can_let_days_pass() {
        return;
    }
    let Some(place) = five_years() else { return };
    let (machine, data) = (&place.machine, place.machine.path("data"));
    let server = Server::start(&data);
    machine.pair_with(&server);
    let password = machine.path("restic.txt");
    let args = ["import", "restic", text(&place.from), "--password-file", text(&password)];
    let said = machine.ok(args);
    assert!(said.stdout.contains("5 imported, 0 imported before"), "{said:?}");
    assert!(said.stderr.contains("rules keep these snapshots by their dates"), "{said:?}");
    machine.administer(&data, &["retention", "--default", "--keep-yearly", "4"]);
    drop(server);
    let prune = machine.command(["admin", "--data", text(&data), "prune", "--json"]);
    let pruned =
        Outcome::of(&mut days_later(UNLOCKED, &prune)).expect(0).of_type("prune").remove(0);
    assert_eq!(pruned["snapshots_forgotten"].as_array().unwrap().len(), 1, "{pruned}");
}
