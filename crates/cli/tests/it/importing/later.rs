//! After an import: its dates, its paths, and what it does not say of this computer's own backups.

use std::fs;

use super::Place;
use crate::house::{small_tree, text};

#[test]
fn an_import_or_a_copy_is_no_good_backup() {
    let Some(place) = Place::new() else { return };
    small_tree(&place.source);
    place.back_up(2020, &[]);
    place.import();
    let second = place.machine.path("second");
    place.machine.init(&["-r", text(&second)]);
    place.machine.ok(["copy", "--from", text(&place.to), "-r", text(&second)]);
    for repo in [&place.to, &second] {
        let status = |most| ["status", "-r", text(repo), "--fail-if-older", most];
        place.machine.run(status("3d")).expect(4);
        place.machine.ok(["backup", text(&place.source), "-r", text(repo)]);
        place.machine.run(status("3d")).expect(0);
    }
}
