//! Tests of `holdall-disks`: on recorded trees of `/sys`, and on loop devices.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

mod loops;
mod making;
mod recorded;
mod refusing;
