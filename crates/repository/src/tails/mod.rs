//! What grows until it is a pack: `tail` is the payload with its `journal`, `group_commit` shares one fsync among all who
//! wait for it, `checked_block` is a block that may be stored, and `objects` says which objects lie in a tail.

pub(crate) mod checked_block;
pub(crate) mod group_commit;
pub(crate) mod journal;
pub(crate) mod objects;
pub(crate) mod tail;
