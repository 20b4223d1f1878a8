//! What several commands say alike: lists of snapshots and entries, damage, repairs and audits.

pub(crate) mod audits;
pub(crate) mod changes;
pub(crate) mod entries;
pub(crate) mod items;
pub(crate) mod listing;
pub(crate) mod repairs;
pub(crate) mod restore_command;
