//! After an import: its dates, its paths, and what it does not say of this computer's own backups.

use std::fs;
use std::process::Command;

use super::Place;
use crate::house::{Outcome, small_tree, text};

/// The lines of a command's output that have one of these words, by the word.
fn in_order<'a>(said: &str, words: &[&'a str]) -> Vec<&'a str> {
    let found = |line: &str| words.iter().copied().find(|word| line.contains(word));
    said.lines().filter_map(found).collect()
}

#[test]
fn an_import_or_a_copy_is_no_good_backup() {
    let Some(place) = Place::new() else { return };
    small_tree(&place.source);
    place.back_up(2020, &[]);
    place.import();
    let second = place.machine.path("second");
    place.machine.init(&["-r", text(&second)]);
    let args = ["copy", "--from", text(&place.to), "-r", text(&second)];
    let mut copy = place.machine.command(args);
    Outcome::of(copy.env("HOLDALL_FROM_PASSWORD", "correct horse")).expect(0);
    for repo in [&place.to, &second] {
        let status = |most| ["status", "-r", text(repo), "--fail-if-older", most];
        place.machine.run(status("3d")).expect(4);
        place.machine.ok(["backup", text(&place.source), "-r", text(repo)]);
        place.machine.run(status("3d")).expect(0);
    }
}

#[test]
fn snapshots_are_listed_and_searched_by_the_dates_that_are_shown() {
    let Some(place) = Place::new() else { return };
    fs::create_dir(&place.source).unwrap();
    fs::write(place.source.join("letter"), "of now").unwrap();
    let repo = text(&place.to);
    place.machine.ok(["backup", text(&place.source), "-r", repo]);
    for year in [2022, 2020] {
        fs::write(place.source.join("letter"), format!("of {year}")).unwrap();
        place.back_up(year, &[]);
    }
    let ids = place.restic_ids();
    for id in [&ids[1], &ids[0]] {
        place.import_with(&["--snapshot", id], 0);
    }
    let listed = place.machine.ok(["snapshots", "-r", repo]).stdout;
    assert_eq!(in_order(&listed, &["2020-", "2022-", "2026-", "2027-"])[..2], ["2020-", "2022-"]);
    let listed = place.machine.ok(["snapshots", "-r", repo, "--json"]).of_type("snapshot");
    assert_eq!(listed[0]["original_received"], "2020-02-03T04:05:06Z");

    let found = place.machine.ok(["find", "letter", "-r", repo]);
    let dates = in_order(&found.stdout, &["2020-", "2022-"]);
    assert_eq!(dates, ["2022-", "2020-"], "{found:?}");
    let first = found.stdout.lines().next().unwrap().split(' ').nth(1).unwrap().to_owned();
    let own = listed.iter().find(|one| one["copied_from"].is_null()).unwrap();
    assert!(own["id"].as_str().unwrap().starts_with(&first), "{found:?}");
    assert!(found.stderr.contains(&first), "{found:?}");
}

#[test]
fn what_was_backed_up_by_a_relative_path_is_recorded_where_the_tree_has_it() {
    let Some(place) = Place::new() else { return };
    small_tree(&place.source);
    let below = |path: &str| {
        let mut restic = Command::new("restic");
        restic.args(["--no-cache", "-q", "-r", text(&place.from), "backup", path]);
        restic.env("RESTIC_PASSWORD_FILE", place.machine.path("restic.txt"));
        Outcome::of(restic.current_dir(&place.source)).expect(0);
    };
    below("docs");
    below(".");
    place.import();
    let mut paths: Vec<_> =
        place.snapshots().iter().map(|one| one["paths"][0].as_str().unwrap().to_owned()).collect();
    paths.sort();
    assert_eq!(paths, ["/", "/docs"]);
    for one in place.snapshots() {
        place.restore(one["id"].as_str().unwrap());
    }
}

#[test]
fn a_password_is_trimmed_as_restic_trims_it() {
    let Some(place) = Place::new() else { return };
    small_tree(&place.source);
    fs::write(place.machine.path("restic.txt"), "\u{feff} \tof restic  \n\n").unwrap();
    place.back_up(2020, &[]);
    place.import();
    let mut by_command =
        place.machine.command(["import", "restic", text(&place.from), "-r", text(&place.to)]);
    by_command.env("HOLDALL_FROM_PASSWORD_COMMAND", "printf ' of restic \\n'");
    Outcome::of(&mut by_command).expect(0);
}
