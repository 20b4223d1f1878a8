//! The agent's crate as the command line uses it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

mod calendar;
mod journal;
mod journal_doubts;
mod schedule;
