//! What the pipelines of backup, copy, restore and dump share: queues that are bounded in bytes, and threads.
//!
//! `budget` grants bytes in the order of the output, `stage` runs one step on plain threads, `concurrency` and
//! `hill_climb` find how many of them the storage takes, and `request_meters` counts the time of requests.

pub(crate) mod budget;
pub(crate) mod concurrency;
pub(crate) mod hill_climb;
pub(crate) mod request_meters;
pub(crate) mod stage;
