//! The contract of a repository, kept by the embedded one, and what a directory must survive.

mod contract;
mod world;
