//! The system calls against a real file system, as root and as anybody else.

#![allow(clippy::expect_used, reason = "these functions are part of tests")]

mod attributes;
mod directories;
mod files;
mod targets;

use std::os::unix::ffi::OsStrExt;

use holdall_sys::{Dir, Name, TargetDir, users};

/// An empty directory that vanishes, opened for writing.
fn place() -> (tempfile::TempDir, TargetDir) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let target = TargetDir::open_root(folder.path()).expect("it was just made");
    (folder, target)
}

fn open(folder: &tempfile::TempDir) -> Dir {
    Dir::open_absolute(folder.path().as_os_str().as_bytes()).expect("it was just made")
}

fn name(bytes: &[u8]) -> Name<'_> {
    Name::new(bytes).expect("a plain name")
}

fn is_root() -> bool {
    users::effective_uid() == 0
}

/// The number of the system's error, for the few that callers tell apart.
fn errno<T: std::fmt::Debug>(result: std::io::Result<T>) -> i32 {
    let error = result.expect_err("the system refuses it");
    error.raw_os_error().expect("the system's own error")
}
