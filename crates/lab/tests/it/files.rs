//! That what is asked of files is really done, and counted truly.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use holdall_lab::files::{
    FilesMeasured, Items, LeftOut, SmallFiles, count_items, measure_mix, measure_size,
    measure_small,
};
use holdall_lab::{LabError, Scratch, Stop};

const LONG: Duration = Duration::from_secs(600);

fn scratch() -> (tempfile::TempDir, Scratch) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (scratch, _) = Scratch::make(dir.path()).unwrap();
    (dir, scratch)
}

fn small(scratch: &Scratch, asked: &SmallFiles) -> Vec<FilesMeasured> {
    let mut all = Vec::new();
    let keep = |measured| {
        all.push(measured);
        Ok::<_, LabError>(())
    };
    measure_small(scratch, asked, &Stop::default(), keep).unwrap();
    all
}

#[test]
fn every_kind_of_work_is_done_to_every_file() {
    let (_dir, scratch) = scratch();
    for workers in [1, 3] {
        let asked = SmallFiles { files: 20, file_bytes: 5000, workers, limit: LONG };
        let all = small(&scratch, &asked);
        let words: Vec<_> = all.iter().map(|one| &*one.measurement.operation).collect();
        let expected = ["create", "write", "fsync", "stat", "list", "read", "rename", "delete"];
        assert_eq!(words, expected);
        for one in &all {
            let words = &one.measurement.operation;
            assert_eq!((one.items.files, one.items.all()), (20, 20), "{words}");
            let bytes = if ["write", "read"].contains(&&**words) { 100_000 } else { 0 };
            assert_eq!((one.bytes, one.measurement.jobs), (bytes, Some(workers)), "{words}");
            assert!(one.measurement.latency_ns.is_some());
        }
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1, "the lock");
    }
}

#[test]
fn what_was_not_made_in_time_is_in_no_later_work() {
    let (_dir, scratch) = scratch();
    let asked = SmallFiles { files: 50, file_bytes: 1, workers: 1, limit: Duration::ZERO };
    assert!(small(&scratch, &asked).iter().all(|one| one.items.all() == 0));
}

#[test]
fn a_size_is_written_and_read_and_the_room_given_back() {
    let (_dir, scratch) = scratch();
    let room = scratch.room_bytes();
    let [wrote, read] = measure_size(&scratch, 200_000, Duration::ZERO, &Stop::default()).unwrap();
    assert_eq!((wrote.bytes, wrote.items.files), (200_000, 1), "at least one, whatever the limit");
    assert_eq!((read.bytes, read.measurement.file_bytes), (200_000, Some(200_000)));
    assert_eq!(wrote.measurement.end_fsync, Some(true));

    assert_eq!(scratch.room_bytes(), room);
    let refused = measure_size(&scratch, room + 1, LONG, &Stop::default()).unwrap_err();
    assert!(matches!(refused, LabError::NoRoom { .. }));
}

#[test]
fn a_small_mix_has_all_kinds_of_items_and_about_its_bytes() {
    let (_dir, scratch) = scratch();
    let [wrote, read] = measure_mix(&scratch, 6_000_000, &Stop::default()).unwrap();
    let Items { files, directories, links, others } = wrote.items;
    assert!(files > 50 && directories >= 7 && links == directories && others == 0);
    assert!((4_000_000..=7_000_000).contains(&wrote.bytes), "{}", wrote.bytes);
    assert_eq!((read.bytes, read.items.files), (wrote.bytes, files));
}

#[test]
fn all_items_are_counted_hidden_ones_and_links_too() {
    let (dir, scratch) = scratch();
    let top = scratch.path().join("counted");
    fs::create_dir_all(top.join(".hidden/deep")).unwrap();
    fs::write(top.join(".hidden/deep/file"), [1; 10]).unwrap();
    fs::hard_link(top.join(".hidden/deep/file"), top.join("second name")).unwrap();
    symlink("nowhere", top.join("link")).unwrap();
    make_fifo(&top.join("fifo"));
    let counted = count_items(&top, &Stop::default()).unwrap();
    let expected = Items { files: 2, directories: 3, links: 1, others: 1 };
    assert_eq!((counted.items, counted.bytes), (expected, 20));
    assert_eq!(counted.left_out, Some(LeftOut::default()));
    assert_eq!(counted.measurement.bytes_per_second, None, "nothing was moved");
    assert!(count_items(&dir.path().join("none"), &Stop::default()).is_err());
    let wished = Stop::on(Arc::new(AtomicBool::new(true)));
    assert!(matches!(count_items(&top, &wished), Err(LabError::Interrupted)));
}

fn make_fifo(path: &std::path::Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}
