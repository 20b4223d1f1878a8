//! The engine against the real embedded repository and real file systems.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests fail by panicking, are told how long by variables, and print figures"
)]

mod adopted;
mod backup;
mod compacting;
mod journal;
mod live;
mod meddling;
mod patterns;
mod places;
mod storm;
mod world;
mod year;
