//! The terminal and the process: what is printed, how a run shows how far it is, signals, and little memory.

pub(crate) mod confirm;
pub(crate) mod interrupt;
pub(crate) mod little_memory;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod wrapped;
