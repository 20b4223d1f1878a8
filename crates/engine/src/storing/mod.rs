//! Storing a new snapshot, wherever its entries come from: results are taken in order, what the
//! repository lacks is sealed and sent, and the record is committed.
//!
//! ```text
//! results, in order ─► assemble ─► gather, ask ─► store (fill blocks) ─► seal ─► send
//!                         │ new tree's nodes ──┘
//! ```
//!
//! A round trip is made for thousands of objects, never for one file. Sealed bytes are bounded by
//! the length of their queues; plain bytes by the budget that whoever makes the results has them
//! granted from. The record is committed when everything before it is durable.

mod ask;
mod assemble;
mod level;
mod meters;
mod pace;
mod piece;
mod put;
mod seal;
mod send;
mod shared;
mod stages;
mod store;
mod threads;
mod width;

pub(crate) use assemble::{Assembled, Counts, Results};
pub(crate) use level::LEVELS;
pub(crate) use meters::StoringMeters;
pub use pace::PUT_TARGET_BYTES;
pub(crate) use piece::{AdoptedLeaf, Change, LeftOut, NewChunk, Piece};
pub(crate) use put::Putter;
pub(crate) use shared::Shared;
pub(crate) use stages::{NewSnapshot, Stages, Storing};
