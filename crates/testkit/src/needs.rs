//! What a test needs of its computer beside Rust, which not every computer has.

use std::process::Command;

/// Whether something that a test needs is there. In CI it must be; elsewhere its absence is said, and the
/// test is left out.
///
/// # Panics
///
/// In CI, which `CI` in the environment tells, if it is not there.
#[must_use]
pub fn is_there(what: &str, found: bool) -> bool {
    is_there_or_said(what, found, in_ci())
}

/// Whether processes can be watched with strace; as for [`is_there`].
///
/// # Panics
///
/// As [`is_there`].
#[must_use]
pub fn has_strace() -> bool {
    is_there("strace", Command::new("strace").arg("-V").output().is_ok())
}

#[expect(clippy::print_stderr, reason = "a test says what it leaves out")]
fn is_there_or_said(what: &str, found: bool, in_ci: bool) -> bool {
    assert!(found || !in_ci, "missing for this test: {what}");
    if !found {
        eprintln!("not tested, since this is missing: {what}");
    }
    found
}

#[expect(clippy::disallowed_methods, reason = "whether it runs in CI, a test is told by that")]
fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !matches!(&*value, "" | "0" | "false"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_leaves_a_test_out_but_not_in_ci() {
        assert!(is_there_or_said("a thing", true, true));
        assert!(is_there_or_said("a thing", true, false));
        assert!(!is_there_or_said("a thing", false, false));
        std::panic::catch_unwind(|| is_there_or_said("a thing", false, true)).unwrap_err();
    }
}
