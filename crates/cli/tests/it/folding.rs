//! Restores to a disk that takes several names for one, as those of Windows and macOS do: the second of such names
//! is told, and never takes the place of the first.

use std::fs;
use std::path::Path;

use holdall_testkit::{CompareOptions, compare_trees};

use crate::house::{Machine, Outcome, text};
use crate::mounts::Mount;

/// Of each pair the first comes first in a snapshot, for its bytes are less.
const FILES: [&str; 9] = [
    "Foo",
    "foo",
    "Letters/B",
    "letters/a",
    "cafe\u{301}",
    "caf\u{e9}",
    "plain",
    "\u{e4}\u{df}",
    "1",
];

/// More than a restore writes in one go.
const LARGE_BYTES: usize = 5 << 20;

/// A snapshot of files that say what they are called.
fn backed_up(machine: &Machine) {
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    for name in FILES {
        let path = source.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, name).expect("a file");
    }
    fs::write(source.join("LARGE"), vec![b'L'; LARGE_BYTES]).expect("a file");
    fs::write(source.join("large"), vec![b'l'; LARGE_BYTES]).expect("a file");
    machine.init(&["-r", text(&repo)]);
    machine.ok(["backup", "-r", text(&repo), text(&source)]);
}

fn restore(machine: &Machine, target: &Path, more: &[&str]) -> Outcome {
    let from = format!("latest:{}", text(&machine.path("source")));
    let repo = machine.path("repo");
    let args = ["restore", "-r", text(&repo), &from, "--target", text(target), "--json"];
    machine.run([&args[..], more].concat())
}

/// Expects the second of each pair to be told, and the first to be there.
fn expect_first_of_each(target: &Path, done: Outcome, what: &str) {
    let told = done.expect(3).of_type("error");
    let of =
        |error: &serde_json::Value, field: &str| error[field].as_str().expect("words").to_owned();
    let mut paths: Vec<_> = told.iter().map(|error| of(error, "path")).collect();
    paths.sort();
    // The large ones are written at once, and either may be the first.
    let is_large = |path: &String| path.to_lowercase().ends_with("/large");
    assert_eq!(paths.extract_if(.., |path| is_large(path)).count(), 1, "{what}: {told:?}");
    let expected = ["caf\u{e9}", "foo", "letters"].map(|name| target.join(name));
    assert_eq!(paths, expected.map(|path| text(&path).to_owned()), "{what}");
    let twin = told.iter().find(|error| of(error, "path").ends_with("/foo")).expect("told");
    let why = of(twin, "message");
    assert!(why.contains("takes it for Foo") && why.contains("another folder"), "{why}");
    for name in ["Foo", "Letters/B", "cafe\u{301}", "plain", "\u{e4}\u{df}", "1"] {
        assert_eq!(fs::read_to_string(target.join(name)).expect("it is there"), name, "{what}");
    }
    assert!(!target.join("letters/a").exists());
    let large = fs::read(target.join("large")).expect("it is there");
    assert!(large == vec![b'L'; LARGE_BYTES] || large == vec![b'l'; LARGE_BYTES], "{what}");
    assert_eq!(fs::read_dir(target).expect("it is there").count(), 7, "{what}");
}

#[test]
fn of_two_names_that_are_one_on_the_target_the_second_is_told_and_the_first_stays() {
    let machine = Machine::new();
    let Some((disk, _process)) = Mount::folding(&machine.path("disk")) else { return };
    backed_up(&machine);
    let target = disk.point().join("target");
    for options in [&[][..], &["--overwrite", "always"], &["--overwrite", "if-newer"]] {
        let done = restore(&machine, &target, options);
        expect_first_of_each(&target, done, &format!("{options:?}"));
    }
    // All at once into a new folder, as is said to be safe.
    let other = disk.point().join("other");
    let done = restore(&machine, &other, &["--overwrite", "always"]);
    expect_first_of_each(&other, done, "overwriting in a new folder");
}

#[test]
fn names_that_are_apart_on_the_target_are_restored_over_what_is_there() {
    let machine = Machine::new();
    backed_up(&machine);
    let target = machine.path("target");
    for options in [&[][..], &["--overwrite", "always"], &["--overwrite", "if-newer"]] {
        restore(&machine, &target, options).expect(0);
        let source = machine.path("source");
        assert_eq!(compare_trees(&source, &target, &CompareOptions::default()), []);
    }
}

#[test]
fn two_names_that_are_one_with_a_third_that_was_there_are_not_written_over_each_other() {
    let machine = Machine::new();
    let Some((disk, _process)) = Mount::folding(&machine.path("disk")) else { return };
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    fs::create_dir(&source).expect("a folder");
    fs::write(source.join("Both"), "first").expect("a file");
    fs::write(source.join("both"), "second").expect("a file");
    machine.init(&["-r", text(&repo)]);
    machine.ok(["backup", "-r", text(&repo), text(&source)]);
    let target = disk.point().join("target");
    fs::create_dir(&target).expect("a folder");
    fs::write(target.join("BOTH"), "before").expect("a file");
    let done = restore(&machine, &target, &["--overwrite", "always"]).expect(3);
    let told = done.of_type("error");
    assert_eq!(told.len(), 1, "{told:?}");
    let (path, message) = (told[0]["path"].as_str(), told[0]["message"].as_str());
    assert!(path.is_some_and(|path| path.ends_with("/both")), "{told:?}");
    assert!(message.is_some_and(|message| message.contains("takes it for Both")), "{told:?}");
    assert_eq!(fs::read_to_string(target.join("both")).expect("it is there"), "first");
}
