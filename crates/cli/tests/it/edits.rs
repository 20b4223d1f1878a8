//! An edit is seen, however well it hides.

use std::fs;
use std::fs::FileTimes;
use std::path::Path;

use crate::house::{Machine, small_tree};

/// Replaces content by other content of the same length, and puts the modification time back.
fn edit_quietly(file: &Path) {
    let before = fs::metadata(file).unwrap();
    let mut content = fs::read(file).unwrap();
    content.reverse();
    fs::write(file, content).unwrap();
    let times = FileTimes::new().set_modified(before.modified().unwrap());
    fs::File::options().write(true).open(file).unwrap().set_times(times).unwrap();
    assert_eq!(fs::metadata(file).unwrap().modified().unwrap(), before.modified().unwrap());
}

#[test]
fn an_edit_of_the_same_size_and_time_is_in_the_next_snapshot() {
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    let (repo, source) = (repo.to_str().unwrap(), source.to_str().unwrap());
    small_tree(source.as_ref());
    machine.init(&["-r", repo]);
    machine.ok(["backup", "-r", repo, source]);
    // At once: within the clock's tick in which the file was read, too.
    for round in 0..3 {
        let edited = Path::new(source).join("docs/letter.txt");
        edit_quietly(&edited);
        let summary = machine.summary(["backup", "-r", repo, source]);
        assert_eq!(summary["files_changed"], 1, "round {round}: {summary}");
        let target = machine.path(&format!("target-{round}"));
        let from = format!("latest:{source}/docs/letter.txt");
        machine.ok(["restore", "-r", repo, &from, "--target", target.to_str().unwrap()]);
        assert_eq!(fs::read(target.join("letter.txt")).unwrap(), fs::read(&edited).unwrap());
    }
}

#[test]
fn reading_all_again_changes_nothing() {
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    let (repo, source) = (repo.to_str().unwrap(), source.to_str().unwrap());
    small_tree(source.as_ref());
    machine.init(&["-r", repo]);
    machine.ok(["backup", "-r", repo, source]);
    let all = machine.summary(["backup", "-r", repo, source, "--read-all"]);
    assert_eq!((&all["files_changed"], &all["files_new"]), (&0.into(), &0.into()));
}
