//! Restoring over what is there: what is kept is exactly the user's, and what is made fits to it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::house::{Machine, Outcome, text};

/// A repository with a snapshot of a folder.
struct Saved {
    machine: Machine,
    source: PathBuf,
}

impl Saved {
    /// Backs up what `fill` makes.
    fn new(fill: impl FnOnce(&Path)) -> Self {
        let machine = Machine::new();
        let source = machine.path("source");
        fs::create_dir(&source).expect("a folder");
        fill(&source);
        machine.init(&["-r", text(&machine.path("repo"))]);
        machine.ok(["backup", "-r", text(&machine.path("repo")), text(&source)]);
        Self { machine, source }
    }

    /// Restores the folder itself into `target`.
    fn restore(&self, target: &Path, more: &[&str]) -> Outcome {
        let (repo, from) = (self.machine.path("repo"), format!("latest:{}", text(&self.source)));
        let args = ["restore", "-r", text(&repo), &from, "--target", text(target), "--json"];
        self.machine.run(args.iter().chain(more))
    }
}

/// What the last line of a restore notes.
fn notes(done: &Outcome) -> Vec<String> {
    let notes = done.summary()["notes"].as_array().expect("a list").clone();
    notes.iter().map(|note| note.as_str().expect("a note").to_owned()).collect()
}

fn group_of_four(source: &Path) {
    fs::write(source.join("a"), "one").expect("a file");
    for name in ["b", "c", "d"] {
        fs::hard_link(source.join("a"), source.join(name)).expect("a link");
    }
}

fn inodes(target: &Path) -> Vec<u64> {
    let inode = |name| fs::metadata(target.join(name)).expect("it is there").ino();
    ["a", "b", "c", "d"].map(inode).to_vec()
}

#[test]
fn names_of_one_file_are_linked_to_the_one_that_is_there_and_kept() {
    let saved = Saved::new(group_of_four);
    for overwrite in ["never", "if-newer"] {
        let target = saved.machine.path(overwrite);
        saved.restore(&target, &[]).expect(0);
        fs::remove_file(target.join("b")).expect("it is there");
        fs::remove_file(target.join("d")).expect("it is there");
        let kept = fs::metadata(target.join("a")).expect("it is there").ino();
        let done = saved.restore(&target, &["--overwrite", overwrite]).expect(0);
        assert_eq!(inodes(&target), [kept; 4], "{overwrite}");
        assert_eq!(notes(&done), [""; 0], "{overwrite}");
    }
}

#[test]
fn names_of_one_file_that_is_another_now_are_linked_to_each_other() {
    let saved = Saved::new(group_of_four);
    let target = saved.machine.path("target");
    fs::create_dir(&target).expect("a folder");
    fs::write(target.join("a"), "the user's own").expect("a file");
    let done = saved.restore(&target, &["--overwrite", "never"]).expect(0);
    let [a, b, c, d] = inodes(&target)[..] else { panic!("four") };
    assert!(a != b && b == c && c == d, "{:?}", inodes(&target));
    assert_eq!(fs::read(target.join("a")).expect("it is there"), b"the user's own");
    assert_eq!(notes(&done), ["1 link was restored as a copy of its file"]);
}

#[test]
fn names_that_are_kept_apart_from_the_one_that_was_restored_are_told() {
    let saved = Saved::new(group_of_four);
    let target = saved.machine.path("target");
    saved.restore(&target, &[]).expect(0);
    fs::remove_file(target.join("a")).expect("it is there");
    let done = saved.restore(&target, &["--overwrite", "never"]).expect(0);
    let told = "3 links were kept, apart from their files that were restored: --overwrite always links them again";
    assert_eq!(notes(&done), [told]);
    saved.restore(&target, &["--overwrite", "never", "--strict"]).expect(3);
    let done = saved.restore(&target, &["--overwrite", "always"]).expect(0);
    assert_eq!(inodes(&target), [inodes(&target)[0]; 4]);
    assert_eq!(notes(&done), [""; 0]);
}
