//! Sealing, opening and the golden vectors, through the public face alone.

#![allow(clippy::unwrap_used, reason = "helpers of tests, too, may fail the test")]

mod golden;
mod own_keys;
mod sealing;
mod stuck;
mod support;
