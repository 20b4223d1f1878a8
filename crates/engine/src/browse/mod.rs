//! Looking into snapshots without restoring them.
//!
//! `listing` is `ls`, `find` and `history` search in many snapshots, `diff` compares two, and `changes` says what
//! differs between two entries.
//! `viewer` reads entries and pieces of files many times, for who looks around.

pub(crate) mod changes;
pub(crate) mod diff;
pub(crate) mod find;
pub(crate) mod history;
pub(crate) mod listing;
pub(crate) mod viewer;
