//! What a message adds where the system forbids something to everybody.

use std::io;

/// What else may be so where the system forbids something whoever asks.
pub(super) fn if_immutable(error: &io::Error) -> &'static str {
    const EPERM: i32 = 1;
    match error.raw_os_error() {
        Some(EPERM) => ": see with `lsattr -d` whether it or its folder is immutable",
        _ => "",
    }
}
