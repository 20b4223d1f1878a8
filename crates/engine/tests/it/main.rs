//! The engine against the real embedded repository and real file systems.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod adopted;
mod backup;
mod live;
mod meddling;
mod patterns;
mod storm;
mod world;
