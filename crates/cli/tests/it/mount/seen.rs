//! What is seen is what was backed up, and what a restore makes of it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::Command;

use holdall_testkit::{
    CompareOptions, FidelitySizes, RandomTreeSizes, Slice, compare_trees, fidelity_tree,
    random_tree,
};

use super::newest;
use super::place::{Mounted, Place, can_mount};
use crate::house::text;
use crate::mounts::ManyFiles;

/// A change has one in so many of the entries of the huge directory.
const SLICES: u64 = 8;

#[test]
fn everything_a_file_system_can_hold_is_seen_as_it_was() {
    if !can_mount() {
        return;
    }
    let place = ManyFiles::new();
    let machine = place.machine("machine").with_password(Some("correct horse"));
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    machine.init(&["-r", text(&repo)]);
    fs::create_dir(&source).unwrap();
    let full = FidelitySizes::full();
    let huge = Slice::one_in(SLICES).share(full.huge_dir_entries as u64);
    let sizes = FidelitySizes { huge_dir_entries: huge as usize, ..full };
    assert!(fidelity_tree(&source, &sizes).unwrap().is_empty());
    machine.ok(["backup", "-r", text(&repo), text(&source)]);
    let mounted = Mounted::start(&machine, &["-r", text(&repo)]);
    let seen = newest(&mounted, &source);
    let differences = compare_trees(&source, &seen, &CompareOptions::default());
    assert!(
        differences.is_empty(),
        "{} differ: {:#?}",
        differences.len(),
        &differences[..differences.len().min(20)]
    );
    assert_eq!(mounted.end(), (Some(0), String::new()));
}

#[test]
fn a_random_tree_is_seen_as_it_is_restored_and_copied_by_other_programs() {
    let Some(place) = Place::new() else { return };
    let source = place.source();
    random_tree(&source, 11, &RandomTreeSizes::default()).unwrap();
    place.back_up(&[]);
    let target = place.machine.path("target");
    let from = format!("latest:{}", text(&source));
    place.run(&["restore", &from, "--target", text(&target)]).expect(0);
    let mounted = place.mount();
    let seen = newest(&mounted, &source);
    let copied = place.machine.path("copied");
    let done = Command::new("cp").args(["-a", text(&seen), text(&copied)]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    for other in [&target, &copied] {
        let differences = compare_trees(&seen, other, &CompareOptions::default());
        assert!(differences.is_empty(), "{differences:#?}");
    }
}

#[test]
fn names_of_any_bytes_are_listed_and_opened_as_they_are() {
    let Some(place) = Place::new() else { return };
    let source = place.source();
    let names: [&[u8]; 8] = [
        b"\xff\xfe\x80",
        b"line\nbreak",
        b"\x1b[31mred",
        b" ",
        b"...",
        b"-rf",
        "gpj.\u{202e}a".as_bytes(),
        &[b'n'; 255],
    ];
    for name in names {
        let dir = source.join(OsString::from_vec(name.to_vec()));
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join(OsString::from_vec(name.to_vec())), name).unwrap();
    }
    place.back_up(&[]);
    let mounted = place.mount();
    let seen = newest(&mounted, &source);
    let mut listed: Vec<_> =
        fs::read_dir(&seen).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    listed.sort();
    let mut expected: Vec<_> = names.iter().map(|name| OsString::from_vec(name.to_vec())).collect();
    expected.sort();
    assert_eq!(listed, expected);
    for name in &expected {
        assert_eq!(fs::read(seen.join(name).join(name)).unwrap(), name.as_bytes());
    }
    let missing = fs::metadata(seen.join("missing")).unwrap_err();
    assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn owners_are_kept_and_devices_and_privileges_are_shown_without_working() {
    let Some(place) = Place::new() else { return };
    let mounted = place.mount();
    let found = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let point = mounted.path("");
    let point = text(&point).trim_end_matches('/');
    let line = found.lines().find(|line| line.split(' ').nth(4) == Some(point)).unwrap();
    let options: Vec<_> = line.split(' ').nth(5).unwrap().split(',').collect();
    for option in ["ro", "nodev", "nosuid", "noatime"] {
        assert!(options.contains(&option), "{line}");
    }
    assert!(!line.contains("allow_other") && !line.contains("default_permissions"), "{line}");
}
