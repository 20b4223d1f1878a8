//! Tests that need a process of their own.

use std::io;
use std::process::Command;

/// Says to a process that it was started for one test.
const ALONE: &str = "HOLDALL_TEST_ALONE";

/// The calling test as a command, which runs it alone.
///
/// # Errors
/// What the system says; `NotFound` outside a test's own thread.
pub fn this_test() -> io::Result<Command> {
    let thread = std::thread::current();
    let test = thread.name().ok_or(io::ErrorKind::NotFound)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--exact", test]);
    Ok(command)
}

/// Whether the calling test has a process of its own, as it needs if it limits what its process may do. Where
/// it has none it is run once more, in one.
///
/// # Panics
/// If it fails there.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "a test is told by a variable that it is alone")]
pub fn is_alone() -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let done = this_test().and_then(|mut test| test.env(ALONE, "1").output());
    let done = done.unwrap_or_else(|error| panic!("a test cannot be run alone: {error}"));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_runs_once_more_alone_in_a_process() {
        if is_alone() {
            let threads = std::fs::read_dir("/proc/self/task").expect("a process has threads");
            assert!(threads.count() <= 2, "the harness and the test");
        }
    }

    #[test]
    fn a_test_that_fails_alone_fails() {
        match std::panic::catch_unwind(is_alone) {
            Ok(true) => panic!("as it should"),
            Ok(false) => panic!("it failed in its process, and that went unnoticed"),
            Err(_) => {}
        }
    }
}
