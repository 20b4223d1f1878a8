//! What a disk can do: rows of a block size, an order, a way and a number of requests under way.
//!
//! The figures are to be those of fio on the same settings, so the same things are done: each job has
//! a file of its own; what is read was laid out and dropped from the cache before; what is written is
//! a new file whose room is reserved; content does not compress; a random order takes each block once;
//! the time of a write includes its fsync where one was asked for. One request at a time is a plain
//! system call; several are an `io_uring`, or threads where there is none.

mod content;
mod files;
mod growing;
mod measured;
mod order;
mod row;
mod run;
mod standard;
mod sync;

pub use crate::cache::Cache;
pub use content::{fill, stamp};
pub use files::DiskFiles;
pub use growing::{QUICK_LIMIT, growing_at_once, growing_write, larger_in_time};
pub use measured::{Engine, Measured, average};
pub use row::{Access, Row, Until};
pub use run::measure;
pub use standard::{StandardRow, large_steps, standard_set};
pub use sync::measure_fsync;
