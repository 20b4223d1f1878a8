//! The change journal: which folders changed since a set's last run, so that its next one need not walk all of it.
//!
//! The kernel tells root of every change on a file system that is watched as a whole (fanotify). A thread takes that in for as long
//! as the agent runs, and keeps, for each set, the places where something may have changed since its last good run began to walk.
//! A run asks right before it walks, when its hook `before` has ended. The answer is these places, or that it walks everything.
//!
//! It is never trusted: whatever was not seen, or is in doubt, is a [`Reason`] to walk everything, and once a day is one, too.
//! It does not know what a snapshot holds. The run compares each place with its snapshot, so a place too many only costs time.
//!
//! ```text
//! kernel ──events──> batch ──places──> set: since, under way <──asks── run
//! mounts, open files ────────────────────^          └──────places────> run
//! ```

mod batch;
mod disk;
mod file_systems;
mod keeper;
mod knowledge;
mod reason;
mod set;
mod thread;

pub use holdall_sys::fanotify::Queue;
pub use reason::Reason;
pub use set::{Committed, Walk, WatchedSet, WatchedSource};
pub use thread::{Answer, Journal};
