//! Measuring real disks, in small.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

mod disk;
mod files;
mod storage_stack;
