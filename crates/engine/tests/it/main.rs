//! The engine against the real embedded repository and real file systems.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod backup;
mod patterns;
mod world;
