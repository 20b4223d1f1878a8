//! The `holdall` command as users and scripts see it: real processes, real servers, real files.

mod canary;
mod directory;
mod edits;
mod failures;
mod fidelity;
mod house;
mod kill;
mod pairing;
mod try_it;
