//! From a folder to an open repository, and everything that decides whether it may be written.
//!
//! ```text
//! create ──> clear_parts (marker, config, wrappings, spares) ──> lease ──> recovery (tails, packs, marks) ──> open (log)
//! ```
//!
//! `repository_identity` says whose repository it is where its parts disagree, `probe` what the file system lacks,
//! `session` which sessions go on, and `unopened` what is said of a repository without opening it.

pub(crate) mod clear_parts;
pub(crate) mod create;
pub(crate) mod lease;
pub(crate) mod open;
pub(crate) mod probe;
pub(crate) mod recovery;
pub(crate) mod repository_identity;
pub(crate) mod session;
pub(crate) mod unopened;
pub(crate) mod wrappings;
