//! The contract of [`Repository`](crate::Repository) as tests: every implementation passes the
//! same suite, so that the engine cannot tell which one it has.
//!
//! The suite knows no keys of a repository's content: its payloads are made up, since nobody who
//! keeps a repository may look into them. It makes blocks, nodes with references and signed
//! records from `holdall-format` alone.
//!
//! An implementation offers a [`ContractWorld`] and calls [`run`] with a function that makes a new
//! one for each case:
//!
//! ```no_run
//! use holdall_protocol::contract::{ContractWorld, run};
//! # fn new_world() -> Box<dyn ContractWorld> { unimplemented!() }
//!
//! run(&|| new_world());
//! ```
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a promise of the trait that is not kept is a failed test"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use holdall_format::MachineId;

use crate::Repository;

mod committing;
mod creating;
mod fetching;
mod fixture;
mod forge;
mod having;
mod proving;
mod putting;
mod reading;
mod usage;

pub use forge::{Forge, TestKey};

/// One empty place for a repository, and the one machine that may use it.
///
/// The machine is known to the keeper (a server has paired it); the repository is not made yet:
/// the cases call [`Repository::create`] themselves.
pub trait ContractWorld {
    /// A handle of the machine; all handles since the last restart may be used side by side.
    fn repository(&self) -> Arc<dyn Repository>;

    /// The machine's id.
    fn machine(&self) -> MachineId;

    /// The seed of the Ed25519 key with which the machine signs its records.
    fn machine_seed(&self) -> [u8; 32];

    /// Stops whatever keeps the repository and starts it again on what is stored. Handles given
    /// out before are dropped by the caller first and not used again.
    fn restart(&mut self);
}

/// One rule of the contract: its name as a sentence, and what checks it by panicking.
pub type Case = (&'static str, fn(&mut dyn ContractWorld));

/// Every rule.
pub const CASES: &[&[Case]] = &[
    creating::CASES,
    putting::CASES,
    having::CASES,
    committing::CASES,
    fetching::CASES,
    proving::CASES,
    reading::CASES,
    usage::CASES,
];

/// Runs every case in a world of its own.
///
/// # Panics
/// If a case fails, after all have run, with the names of those that failed.
pub fn run(make: &dyn Fn() -> Box<dyn ContractWorld>) {
    let mut failed = Vec::new();
    for (name, case) in CASES.iter().copied().flatten() {
        let attempt = AssertUnwindSafe(|| case(make().as_mut()));
        if catch_unwind(attempt).is_err() {
            failed.push(*name);
        }
    }
    assert!(failed.is_empty(), "rules of the contract that are not kept: {failed:#?}");
}

/// Lists functions as cases under their own names.
macro_rules! cases {
    ($($case:ident),* $(,)?) => {
        pub(super) const CASES: &[$crate::contract::Case] = &[$((stringify!($case), $case)),*];
    };
}
use cases;
