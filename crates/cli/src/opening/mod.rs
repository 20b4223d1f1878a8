//! From what was named to a repository that is open.
//!
//! ```text
//! open (directory or server) ──> known (is it the one from before?) ──> unlock (with what secret) ──> keeper
//! ```
//!
//! `create` makes a repository, `second` opens another one beside it, `key_set` changes what opens it.

pub(crate) mod connection;
pub(crate) mod create;
pub(crate) mod keeper;
pub(crate) mod key_set;
pub(crate) mod known;
pub(crate) mod open;
pub(crate) mod patience;
pub(crate) mod second;
pub(crate) mod unlock;
