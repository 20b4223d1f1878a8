//! A disk whose power is cut: from what a process did to a folder, every state that the folder may be
//! found in afterwards.
//!
//! A program can be right on every disk that keeps its promises, and wrong on the first that only
//! keeps those it was asked for. Here a real process is watched by `strace`; what it wrote, named
//! and made durable becomes a history, and of every moment of that history the states are made that
//! a crash may leave: what was made durable is there, and of the rest anything.
//!
//! ```text
//! strace -> Call ... -> History: Op ...    what was done, in order, and when each became durable
//!                        |
//!          moment, choice of what survived -> Image -> a folder, to be opened as after a reboot
//! ```
//!
//! The disk is as hostile as POSIX allows: a file's fsync does not keep its name, names in one folder
//! are kept or lost each on its own, a write that was not synced is kept in any of its sectors of 512
//! bytes, and a file that has grown without a sync holds anything there. In one thing it is kinder
//! than POSIX, as every file system in use is: a name that was moved is never at neither place.

mod choice;
mod history;
mod image;
mod record;
mod states;
#[cfg(test)]
mod tests;
mod trace;

pub use choice::{Choice, choices};
pub use history::{History, Moment};
pub use image::Image;
pub use record::Watch;
pub use states::{State, failing, memory, states};
