//! Two histories of one machine: what is told of them, by whoever has both, and by whoever has lost one.

use std::fs;
use std::path::PathBuf;

use holdall_testkit::copy_folder;

use crate::house::{Machine, Outcome, files_below};
use crate::lost::{Attic, computer, remove, snapshots};

const BOTH_THERE: &str = "follows the same record as another one";

/// A server, and a computer that has backed up once.
fn attic() -> (Attic, Machine) {
    let desk = computer();
    (Attic::with_desk(desk.path("data"), &desk), desk)
}

/// Backs up a note that says this now.
fn back_up(desk: &Machine, note: &str) -> Outcome {
    let source = desk.path("source");
    fs::write(source.join("note.txt"), note).unwrap();
    desk.run(["backup", source.to_str().unwrap(), "--host", "desk"])
}

fn sequences(desk: &Machine) -> Vec<u64> {
    snapshots(desk).iter().map(|one| one["sequence"].as_u64().unwrap()).collect()
}

fn newest(desk: &Machine) -> String {
    snapshots(desk).last().unwrap()["id"].as_str().unwrap().to_owned()
}

/// The file of the newest record on the server's disk.
fn newest_record(attic: &Attic) -> PathBuf {
    let mut files = files_below(&attic.data.join("repositories"));
    files.retain(|file| file.parent().is_some_and(|folder| folder.ends_with("records")));
    files.into_iter().max().unwrap()
}

/// The same, set back to an older copy once the computer had backed up again; and that snapshot, which is gone.
fn set_back() -> (Attic, Machine, String) {
    let (mut attic, desk) = attic();
    back_up(&desk, "first").expect(0);
    attic.stop();
    copy_folder(&attic.data, &desk.path("older"));
    attic.start();
    back_up(&desk, "second").expect(0);
    let lost = newest(&desk);
    attic.stop();
    remove(&attic.data);
    copy_folder(&desk.path("older"), &attic.data);
    attic.start();
    (attic, desk, lost)
}

#[test]
fn what_a_server_that_was_set_back_still_has_is_read_by_its_name_and_changed_by_nothing() {
    let (_attic, desk, lost) = set_back();
    let listed = desk.run(["snapshots", "--json"]).expect(20).of_type("snapshot");
    let ids: Vec<_> = listed.iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 2, "{listed:?}");
    let (note, target) = (desk.path("source/note.txt"), desk.path("restored"));
    let restore = |name: &str| desk.run(["restore", name, "--target", target.to_str().unwrap()]);

    for unsure in ["latest", &lost] {
        let told = restore(unsure).expect(20).stderr;
        assert!(told.contains("was rolled back"), "{told}");
        assert!(!target.exists(), "{unsure}");
    }
    let told = desk.run(["ls", "latest"]).expect(20).stderr;
    assert!(
        told.contains("which snapshot is latest? It may be") && told.contains(&lost[..10]),
        "{told}"
    );
    for change in [vec!["forget", ids[0]], vec!["tag", ids[0], "--add", "x"], vec!["prune"]] {
        desk.run(&change).expect(20);
    }

    let dumped = desk.run(["dump", &format!("{}:{}", ids[1], note.display())]).expect(20);
    assert_eq!(dumped.stdout, "first");
    assert!(dumped.stderr.contains("was rolled back"), "{}", dumped.stderr);
    for reading in [
        vec!["ls", "--recursive", ids[1]],
        vec!["find", "note.txt"],
        vec!["history", note.to_str().unwrap()],
        vec!["diff", ids[0], ids[1]],
    ] {
        let read = desk.run(&reading).expect(20);
        assert!(
            ["note.txt", &ids[1][..10]].iter().any(|one| read.stdout.contains(one)),
            "{read:#?}"
        );
    }
    restore(ids[1]).expect(20);
    let restored = files_below(&target).into_iter().find(|file| file.ends_with("note.txt"));
    assert_eq!(fs::read_to_string(restored.unwrap()).unwrap(), "first");
    assert!(desk.run(["snapshots"]).expect(20).stdout.contains(&ids[0][..10]), "all are there");
}

#[test]
fn a_server_set_back_to_an_older_copy_is_told_until_a_backup_goes_on_without_what_came_since() {
    let (_attic, desk, lost) = set_back();
    let Outcome { stderr: checked, stdout, .. } = desk.run(["check"]).expect(20);
    assert!(checked.contains(&lost) && checked.contains("was rolled back"), "{checked}");
    assert!(stdout.contains("what is there is whole"), "{stdout}");
    for outcome in [desk.run(["snapshots"]), back_up(&desk, "third")] {
        let told = outcome.expect(20).stderr;
        let is_told = told.contains(&lost) && told.contains("`holdall backup` goes on from there");
        assert!(is_told, "{told}");
    }
    // One history is left, and goes on.
    assert_eq!(sequences(&desk), [1, 2, 3]);
    assert!(!snapshots(&desk).iter().any(|one| one["id"] == lost[..]));
    let silent = [back_up(&desk, "fourth"), desk.run(["check", "--verify", "all"])];
    for outcome in silent.map(|outcome| outcome.expect(0)) {
        assert!(!outcome.stderr.contains(BOTH_THERE), "{outcome:#?}");
    }
}

#[test]
fn a_record_that_comes_back_beside_the_one_in_its_place_is_told_and_both_restore() {
    let (mut attic, desk) = attic();
    back_up(&desk, "second").expect(0);
    let second = newest(&desk);
    attic.stop();
    let (record, aside) = (newest_record(&attic), desk.path("aside"));
    fs::rename(&record, &aside).unwrap();
    // It would be put back from there.
    remove(&desk.path("cache"));
    remove(&desk.path("config/state/receipts"));
    attic.start();
    back_up(&desk, "third").expect(0);
    let third = newest(&desk);
    attic.stop();
    fs::rename(&aside, &record).unwrap();
    attic.start();

    assert_eq!(sequences(&desk), [1, 2, 2]);
    let note = desk.path("source/note.txt");
    for (id, content) in [(&second, "second"), (&third, "third")] {
        assert_eq!(desk.ok(["dump", &format!("{id}:{}", note.display())]).stdout, content);
    }
    for outcome in [desk.run(["snapshots"]), desk.run(["check"]), back_up(&desk, "fourth")] {
        let outcome = outcome.expect(0);
        let told = outcome.stderr.lines().find(|line| line.contains(BOTH_THERE));
        let is_told =
            told.is_some_and(|line| line.contains(&third) && line.contains("nothing is missing"));
        assert!(is_told, "{outcome:#?}");
    }
    assert_eq!(sequences(&desk), [1, 2, 2, 3]);
}

#[test]
fn two_copies_of_one_computer_go_on_in_one_history() {
    let (_attic, desk) = attic();
    let twin = computer();
    for folder in ["config", "cache", "source"] {
        copy_folder(&desk.path(folder), &twin.path(folder));
    }
    for (copy, note) in [(&desk, "second"), (&twin, "third"), (&desk, "fourth"), (&twin, "fifth")] {
        back_up(copy, note).expect(0);
    }
    assert_eq!(sequences(&desk), [1, 2, 3, 4, 5]);
    for copy in [&desk, &twin] {
        let checked = copy.run(["check", "--verify", "all"]).expect(0);
        assert!(!checked.stderr.contains(BOTH_THERE), "{checked:#?}");
    }
}
