//! A repository of which something is damaged: what can be read is shown, and what cannot is named.

use std::fs;
use std::path::PathBuf;

use super::place::{Place, back_up};
use crate::house::{Machine, text};
use crate::repair::flip;

fn tail(machine: &Machine, of: &str) -> PathBuf {
    let tails = fs::read_dir(machine.path("repo/tails")).expect("tails");
    let mut tails = tails.map(|one| one.expect("a file").path());
    let is_it = |path: &PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        name.starts_with(of) && name.ends_with(".payload")
    };
    tails.find(is_it).expect("it is there")
}

fn len(path: &PathBuf) -> usize {
    fs::metadata(path).expect("it is there").len() as usize
}

#[test]
fn the_versions_of_a_file_are_listed_though_another_snapshot_is_damaged() {
    let machine = Machine::new();
    machine.init(&["-r", text(&machine.path("repo"))]);
    let source = machine.path("source");
    fs::create_dir(&source).expect("a folder");
    let mut ends = vec![0];
    for version in ["one", "two", "three"] {
        fs::write(source.join("file"), version).expect("a file");
        back_up(&machine);
        ends.push(len(&tail(&machine, "nodes")));
    }
    // The second's nodes.
    (ends[1]..ends[2]).step_by(100).for_each(|at| flip(&tail(&machine, "nodes"), at));
    fs::remove_dir_all(machine.path("cache")).expect("it was there");
    let place = Place::of(machine);
    let (ids, mut browser) = (place.ids(), place.inside());
    let of = |id: &str| format!("/at/{id}{}/file", text(&place.source()));
    let page = browser.get(&of(&ids[2])).expect(200);
    assert!(page.text().contains("three"), "{}", page.text());
    assert!(page.links().contains(&of(&ids[0])), "{:?}", page.links());
    assert!(page.text().contains("cannot be read"), "{}", page.text());
    assert!(page.text().contains(&ids[1][..10]), "{}", page.text());
    browser.get(&of(&ids[0])).expect(200);
    browser.get(&of(&ids[1])).expect(500);
    // The command line says the same.
    let repo = place.machine.path("repo");
    let told = place.machine.run(["history", "-r", text(&repo), text(&source.join("file"))]);
    let told = told.expect(20);
    assert!(told.stdout.contains(&ids[0][..10]), "{told:?}");
    assert!(told.stderr.contains(&ids[1][..10]), "{told:?}");
}
