//! The clear format as a whole, pinned byte by byte.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod golden;
mod samples;
