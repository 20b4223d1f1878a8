//! A real server in this process, asked over TLS on loopback.

mod access;
mod admin;
mod contract;
mod lost;
mod raw;
mod refusals;
mod world;
