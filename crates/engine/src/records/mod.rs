//! Snapshots as the repository lists them: records, their signatures and chains, and what is missing of them.
//!
//! ```text
//! record_list -> sound_records -> chains, receipt_signers, retention_tombstones -> snapshots
//!  (fetched,      (signed,         (nothing is omitted, signed by whom it should     (listed,
//!   cached)        decoded)         be, deleted as the rules say)                     found by name)
//! ```
//!
//! `record` makes a record, `amend` one that changes tags and pins, and `put_back` gives the repository those that it
//! lost. `checked_records` remembers which signatures were checked, and `lost` which objects a repository lost.

pub(crate) mod amend;
pub(crate) mod chains;
pub(crate) mod checked_records;
pub(crate) mod gone;
pub(crate) mod lost;
pub(crate) mod put_back;
pub(crate) mod receipt_signers;
pub(crate) mod record;
pub(crate) mod record_list;
pub(crate) mod retention_tombstones;
pub(crate) mod snapshot;
pub(crate) mod snapshot_path;
pub(crate) mod snapshots;
pub(crate) mod sound_records;
pub(crate) mod whose_latest;
