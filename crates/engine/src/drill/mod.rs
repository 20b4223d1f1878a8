//! A drill: a sample of a snapshot is restored as everything would be, compared with what the snapshot says, and
//! timed.
//!
//! The sample consists of whole leaves of the tree, which a seed chooses: what lies beside each other in the tree lies
//! so in blocks, and is fetched as in a restore of everything. Small files and large ones are restored one after the
//! other, since small ones cost by number and large ones by bytes; from both rates follows how long everything takes.

mod compare;
mod estimate;
mod sample;

pub use compare::Compared;
pub use estimate::{Measured, estimate};
pub use sample::{DrillLimits, DrillPart, DrillSample};

#[cfg(test)]
mod tests;
