//! Arguments in two steps: as typed, then resolved into what the libraries take.
//!
//! `sources` and `recordable` say what a backup reads, `filter` and `selection` which snapshots and paths are meant,
//! `moment` and `quantity` read times, sizes and rates, and `parts` are the arguments that several commands share.

pub(crate) mod filter;
pub(crate) mod keep_rules;
pub(crate) mod machine_name;
pub(crate) mod moment;
pub(crate) mod parts;
pub(crate) mod quantity;
pub(crate) mod recordable;
pub(crate) mod selection;
pub(crate) mod sources;
