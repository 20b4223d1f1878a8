//! Which snapshots rules keep. `evaluate` is the rules by themselves, `own_snapshots` applies them to what its owner has
//! listed, `judge` to what a server sees, and `forget` writes the tombstones.

pub(crate) mod evaluate;
pub(crate) mod forget;
pub(crate) mod judge;
pub(crate) mod own_snapshots;

pub use evaluate::{ALL, Aged, Backwards, Came, Policy, Reason, keep};
pub use own_snapshots::{OwnSnapshot, keep_own};
