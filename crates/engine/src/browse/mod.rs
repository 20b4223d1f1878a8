//! Looking into snapshots without restoring them.
//!
//! `listing` is `ls`, `find` and `history` search in many snapshots, `diff` compares two, and `changes` says what
//! differs between two entries.
//! `viewer` reads entries and pieces of files many times, for who looks around; `on_demand` opens it while it is used.
//! `numbered` names entries by numbers, `hard_links` says which are one file, and `ahead` reads files before they are asked
//! for: what a file system needs.

pub(crate) mod ahead;
pub(crate) mod changes;
pub(crate) mod diff;
pub(crate) mod find;
pub(crate) mod hard_links;
pub(crate) mod history;
pub(crate) mod listing;
pub(crate) mod numbered;
pub(crate) mod on_demand;
pub(crate) mod viewer;
