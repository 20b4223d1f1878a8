//! Times that the target's file system does not keep as they were are told.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use crate::house::{Machine, text};
use crate::mounts::Mount;

/// Seconds of the year 2100.
const LATE: u64 = 4_102_444_800;

fn write_dated(path: &Path, secs: u64, nanos: u32) {
    let file = fs::File::create(path).expect("a file");
    file.set_modified(UNIX_EPOCH + Duration::new(secs, nanos)).expect("ours");
}

/// Has a snapshot of a file of each of these times, and a narrow file system to restore it to.
fn scene(files: &[(&str, u64, u32)]) -> Option<(Machine, Mount)> {
    let machine = Machine::new();
    let disk = Mount::ext4_made_with(&machine.path("disk"), 8 << 20, &["-I", "128"])?;
    let source = machine.path("source");
    fs::create_dir(&source).expect("a folder");
    files.iter().for_each(|(name, secs, nanos)| write_dated(&source.join(name), *secs, *nanos));
    let folder = fs::File::open(&source).expect("it is there");
    folder.set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000_000)).expect("ours");
    machine.init(&["-r", text(&machine.path("repo"))]);
    machine.ok(["backup", "-r", text(&machine.path("repo")), text(&source)]);
    Some((machine, disk))
}

#[test]
fn a_time_that_the_file_system_can_not_hold_is_told() {
    let Some((machine, disk)) = scene(&[("late", LATE, 0), ("usual", 1_000_000_000, 0)]) else {
        return;
    };
    let (repo, target) = (machine.path("repo"), disk.point().join("target"));
    let from = format!("latest:{}", text(&machine.path("source")));
    let restore = |target: &Path| {
        machine.run(["restore", "-r", text(&repo), &from, "--target", text(target), "--json"])
    };
    let done = restore(&target).expect(3);
    let [told] = &done.of_type("error")[..] else { panic!("{}", done.stdout) };
    let message = told["message"].as_str().expect("a message");
    assert!(message.contains("cannot hold its modification time"), "{message}");
    // Where it is held nothing is said.
    let wide = machine.path("wide");
    restore(&wide).expect(0);
    let late = fs::metadata(wide.join("late")).expect("it is there").mtime();
    assert_eq!(late, LATE as i64);
}

#[test]
fn times_that_the_file_system_keeps_less_exactly_are_noted_once() {
    let files = [("a", 1_000_000_000, 7), ("b", 1_000_000_000, 8), ("c", 1_000_000_000, 0)];
    let Some((machine, disk)) = scene(&files) else { return };
    let (repo, target) = (machine.path("repo"), disk.point().join("target"));
    let from = format!("latest:{}", text(&machine.path("source")));
    let args = ["restore", "-r", text(&repo), &from, "--target", text(&target)];
    let done = machine.summary(args);
    let note = "the target's file system keeps times less exactly than the snapshot: --overwrite if-newer takes \
                the files for older";
    assert_eq!(done["notes"], serde_json::json!([note]));
    let strict = ["--overwrite", "always", "--strict", "--json"];
    let done = machine.run(args.iter().chain(&strict)).expect(3);
    assert_eq!(done.of_type("error").len(), 1, "{}", done.stdout);
}
