//! Trees as a whole: built, read, compared and attacked.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod chunker;
mod common;
mod content;
mod golden;
mod hostile;
mod leaves;
mod positions;
mod tree;
