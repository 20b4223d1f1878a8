//! What a restore says of its target names what is there, and what helps there.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::house::{Machine, Outcome, text};
use crate::mounts::Mount;

/// A snapshot of a folder of so many files, and a disk to restore it to.
fn scene(files: usize, make: &[&str]) -> Option<(Machine, Mount)> {
    let machine = Machine::new();
    let disk = Mount::ext4_made_with(&machine.path("disk"), 8 << 20, make)?;
    let source = machine.path("source");
    fs::create_dir_all(source.join("inner")).expect("a folder");
    for number in 0..files {
        fs::write(source.join("inner").join(number.to_string()), "content").expect("a file");
    }
    machine.init(&["-r", text(&machine.path("repo"))]);
    machine.ok(["backup", "-r", text(&machine.path("repo")), text(&source)]);
    Some((machine, disk))
}

fn restore(machine: &Machine, target: &Path, more: &[&str]) -> Outcome {
    let from = format!("latest:{}", text(&machine.path("source")));
    let repo = machine.path("repo");
    let args = ["restore", "-r", text(&repo), &from, "--target", text(target)];
    machine.run(args.iter().chain(more))
}

fn chattr(how: &str, path: &Path) {
    let done = Command::new("chattr").arg(how).arg(path).status().expect("e2fsprogs is there");
    assert!(done.success());
}

#[test]
fn a_disk_that_can_hold_no_more_files_is_told_apart_from_one_without_room() {
    let Some((machine, disk)) = scene(60, &["-N", "32"]) else { return };
    let target = disk.point().join("target");
    let said = restore(&machine, &target, &[]).expect(1).stderr;
    assert!(said.contains(&format!("cannot write {}/inner/", text(&target))), "{said}");
    assert!(said.contains("`df -i`"), "{said}");
}

#[test]
fn what_is_immutable_is_not_for_another_user_to_write() {
    let Some((machine, disk)) = scene(1, &[]) else { return };
    let target = disk.point().join("target");
    fs::create_dir_all(target.join("inner")).expect("a folder");
    chattr("+i", &target.join("inner"));
    let said = restore(&machine, &target, &["--overwrite", "never"]).expect(3).stderr;
    let file = format!("error: {}/inner/0: it cannot be made: ", text(&target));
    assert!(said.contains(&file) && said.contains("`lsattr -d`"), "{said}");
    chattr("-i", &target.join("inner"));
    chattr("+i", &target);
    fs::remove_dir(target.join("inner")).expect_err("it is immutable");
    let other = target.join("other");
    let said = restore(&machine, &other, &[]).expect(1).stderr;
    assert!(said.contains(text(&other)) && said.contains("`lsattr -d`"), "{said}");
    chattr("-i", &target);
    fs::remove_dir(target.join("inner")).expect("it is empty");
    chattr("+i", &target);
    let said = restore(&machine, &target, &["--overwrite", "never"]).expect(1).stderr;
    assert!(said.contains(text(&target)) && said.contains("`lsattr -d`"), "{said}");
    assert!(!said.contains("be that user"), "{said}");
    chattr("-i", &target);
}
