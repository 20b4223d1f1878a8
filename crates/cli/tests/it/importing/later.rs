//! After an import: its dates, its paths, and what it does not say of this computer's own backups.

use std::fs;
use std::process::Command;

use super::Place;
use crate::house::{Outcome, small_tree, text};

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
