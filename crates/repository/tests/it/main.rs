//! The contract of a repository, kept by the embedded one, and what a directory must survive.
#![expect(clippy::unwrap_used, reason = "an unexpected error is a failed test")]

mod beside;
mod compacting;
mod contract;
mod crash;
mod derived;
mod first_over_a_share;
mod full;
mod house;
mod keeping;
mod pruning;
mod quota;
mod repair;
mod resting;
mod unread;
mod world;
mod wrappings;
