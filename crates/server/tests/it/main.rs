//! A real server in this process, asked over TLS on loopback.

#![allow(clippy::unwrap_used, reason = "helpers of tests, too, may fail the test")]

mod access;
mod admin;
mod contract;
mod evil_client;
mod floods;
mod housekeeping;
mod kits;
mod lost;
mod matrix;
#[cfg(feature = "web")]
mod pages_speed;
mod raw;
mod refusals;
mod removal;
mod runs;
mod short_codes;
mod versions;
mod world;
