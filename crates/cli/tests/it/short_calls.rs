//! Every read and write of a file may do less than was asked, and nobody notices but by the time it
//! takes.
//!
//! strace can have a call fail, not do less. So this is done where programs call the C library, by a
//! library of our own that is put before it: `short_calls.c`. Files of the source are read without it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::beginning::{Beginning, Work};
use crate::house::text;

/// Compiles the library.
fn library(folder: &Path) -> PathBuf {
    let (source, library) = (folder.join("short_calls.c"), folder.join("short_calls.so"));
    fs::write(&source, include_str!("short_calls.c")).expect("room");
    let compiled = Command::new("cc")
        .args(["-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", text(&library), text(&source)])
        .output()
        .expect("a C compiler, which Rust needs to link");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    library
}

#[test]
fn reads_and_writes_that_do_less_than_was_asked_are_gone_on_with() {
    let beginning = Beginning::new();
    let tools = tempfile::tempdir().expect("a folder");
    let library = library(tools.path());
    for (number, how) in ["one", "half", "less"].into_iter().enumerate() {
        for (other, work) in [Work::Backup, Work::Prune, Work::Restore].into_iter().enumerate() {
            let machine = beginning.fresh(2 + 3 * number + other, work);
            let count = tools.path().join("count");
            let by = [
                "env".to_owned(),
                format!("LD_PRELOAD={}", library.display()),
                format!("SHORT_BELOW={}", machine.path("").display()),
                format!("SHORT_HOW={how}"),
                format!("SHORT_COUNT={}", count.display()),
            ];
            let by: Vec<&str> = by.iter().map(String::as_str).collect();
            let outcome = beginning.work(work, &machine, &by, "target");
            let what = format!("{work:?}, {how}: {outcome:?}");
            assert_eq!(outcome.code, Some(0), "{what}");
            let shortened: u64 = fs::read_to_string(&count).unwrap().trim().parse().unwrap();
            println!("{work:?}, {how}: {shortened} calls did less than was asked");
            assert!(shortened > 50, "{what}: {shortened}");
            if work != Work::Restore {
                beginning.work(Work::Restore, &machine, &[], "target").expect(0);
            }
            if work != Work::Prune {
                beginning.assert_restored(&machine.path("target"), &what);
            }
            beginning.run(&machine, &["check", "--scrub", "--verify", "all"]).expect(0);
        }
    }
}
