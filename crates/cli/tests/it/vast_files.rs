//! Sparse files that are together larger than 64 bits count: every sum stays at the end, and none begins anew.

use std::fs;

use crate::house::{Machine, text};
use crate::mounts::Mount;

#[test]
fn a_sum_that_can_not_be_counted_stays_at_the_end() {
    let machine = Machine::new();
    let Some(disk) = Mount::in_memory(&machine.path("disk"), 1 << 20) else { return };
    let source = disk.point().join("source");
    fs::create_dir(&source).expect("a folder");
    for name in ["a", "b", "c"] {
        let file = fs::File::create(source.join(name)).expect("a file");
        file.set_len(i64::MAX as u64).expect("a hole takes no room");
    }
    let repo = machine.path("repo");
    let repo = text(&repo);
    machine.init(&["-r", repo]);
    for _ in 0..2 {
        let done = machine.summary(["backup", "-r", repo, text(&source)]);
        assert_eq!(done["total_bytes_processed"], u64::MAX, "{done}");
    }
    let stats = machine.summary(["stats", "-r", repo]);
    assert_eq!(
        (&stats["newest_bytes"], &stats["total_bytes"]),
        (&u64::MAX.into(), &u64::MAX.into())
    );
    let (from, target) = (format!("latest:{}", text(&source)), disk.point().join("target"));
    let args = ["restore", "-r", repo, &from, "--target", text(&target)];
    let foreseen = machine.summary(args.iter().chain(&["--dry-run"]));
    assert_eq!(foreseen["bytes_restored"], u64::MAX, "{foreseen}");
    let done = machine.summary(args);
    assert_eq!((&done["files_restored"], &done["errors"]), (&3.into(), &0.into()), "{done}");
    let len = fs::metadata(target.join("c")).expect("it is there").len();
    assert_eq!(len, i64::MAX as u64);
}
