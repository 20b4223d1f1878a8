//! What a request does to an open store, a file for each verb: `put`, `commit`, `fetch`, `compact`; `usage` counts what is
//! stored, and `anomaly` compares a snapshot with the one before.

pub(crate) mod anomaly;
pub(crate) mod commit;
pub(crate) mod compact;
pub(crate) mod fetch;
pub(crate) mod put;
pub(crate) mod usage;
