//! What of a repository of restic cannot be read, and what need not be.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use holdall_testkit::Random;

use super::Place;
use crate::house::{files_below, small_tree, text};

/// Packs with content: those of trees are much smaller here.
fn packs_with_content(place: &Place) -> Vec<PathBuf> {
    let packs = files_below(&place.from.join("data"));
    packs.into_iter().filter(|pack| pack.metadata().unwrap().len() > 100_000).collect()
}

fn destroy(file: &PathBuf) {
    let bytes = Random::new(1).bytes(fs::metadata(file).unwrap().len() as usize);
    // restic protects its files from being written.
    fs::remove_file(file).unwrap();
    fs::write(file, bytes).unwrap();
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_imported() {
    let Some(place) = Place::new() else { return };
    small_tree(&place.source);
    place.back_up(2020, &[]);
    fs::write(place.source.join("other.bin"), Random::new(8).bytes(2_000_000)).unwrap();
    place.back_up(2021, &[]);
    let mut packs = packs_with_content(&place);
    packs.sort_by_key(|pack| pack.metadata().unwrap().modified().unwrap());
    destroy(&packs[0]);
    let told = place.import_with(&[], 3);
    let summary = told.summary();
    assert_eq!((&summary["imported"], &summary["errors"]), (&2.into(), &0.into()), "{summary}");
    assert!(told.stdout.contains("/large.bin"), "{told:?}");
    assert!(!told.stdout.contains("/other.bin"), "{told:?}");
    let last = place.snapshots().pop().unwrap();
    let restored = place.restore(last["id"].as_str().unwrap());
    let below = |name: &str| restored.join(text(&place.source).trim_start_matches('/')).join(name);
    assert!(!below("large.bin").exists());
    let same =
        |name: &str| fs::read(below(name)).unwrap() == fs::read(place.source.join(name)).unwrap();
    assert!(same("other.bin"));
    place.check();
}

#[test]
fn what_is_as_in_a_snapshot_that_was_imported_is_not_read_again() {
    let Some(place) = Place::new() else { return };
    small_tree(&place.source);
    place.back_up(2020, &[]);
    place.import();
    packs_with_content(&place).iter().for_each(destroy);
    // Other metadata, the same content; and a folder that stays as it is.
    fs::File::open(place.source.join("large.bin"))
        .and_then(|file| file.set_modified(std::time::UNIX_EPOCH))
        .unwrap();
    fs::write(place.source.join("added"), "new").unwrap();
    place.back_up(2021, &[]);
    let next = place.import();
    assert_eq!((&next["imported"], &next["unreadable"]), (&1.into(), &0.into()), "{next}");
    let last = place.snapshots().pop().unwrap();
    let restored = place.restore(last["id"].as_str().unwrap());
    let below = restored.join(text(&place.source).trim_start_matches('/'));
    let same = |name: &str| {
        fs::read(below.join(name)).unwrap() == fs::read(place.source.join(name)).unwrap()
    };
    for name in ["large.bin", "docs/letter.txt", "added"] {
        assert!(same(name), "{name}");
    }
    place.check();
}

#[test]
fn a_snapshot_without_its_tree_is_not_imported_and_the_others_are() {
    let Some(place) = Place::new() else { return };
    small_tree(&place.source);
    place.back_up(2020, &[]);
    let before = files_below(&place.from.join("data"));
    fs::write(place.source.join("added"), "new").unwrap();
    place.back_up(2021, &[]);
    let is_new = |file: &&PathBuf| !before.contains(file);
    files_below(&place.from.join("data")).iter().filter(is_new).for_each(destroy);
    let told = place.import_with(&[], 20);
    let summary = told.summary();
    assert_eq!((&summary["imported"], &summary["errors"]), (&1.into(), &1.into()), "{summary}");
    let short = &place.restic_ids()[1][..8];
    assert!(
        told.stdout.contains(&format!("snapshot {short} of restic was not imported")),
        "{told:?}"
    );
    assert_eq!(place.snapshots().len(), 1);
    place.check();
}

#[test]
fn a_snapshot_file_that_cannot_be_read_is_named_and_the_others_are_imported() {
    let Some(place) = Place::new() else { return };
    small_tree(&place.source);
    place.back_up(2020, &[]);
    fs::write(place.source.join("added"), "new").unwrap();
    place.back_up(2021, &[]);
    let damaged = place.restic_ids().remove(0);
    let file = place.from.join("snapshots").join(&damaged);
    fs::remove_file(&file).unwrap();
    fs::write(&file, "").unwrap();
    // What is no file is none of restic's.
    let pipe = place.from.join("snapshots").join("0".repeat(64));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let told = place.import_with(&[], 20);
    let summary = told.summary();
    assert_eq!((&summary["imported"], &summary["errors"]), (&1.into(), &1.into()), "{summary}");
    assert!(
        told.stdout.contains(&format!("snapshot {damaged} of restic cannot be read")),
        "{told:?}"
    );
    let restored = place.restore(place.snapshots()[0]["id"].as_str().unwrap());
    let below = restored.join(text(&place.source).trim_start_matches('/'));
    assert_eq!(fs::read_to_string(below.join("added")).unwrap(), "new");
}
