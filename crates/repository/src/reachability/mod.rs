//! Which objects a snapshot reaches: `closure` descends from a root, and `read` reads the blocks for it.

pub(crate) mod closure;
pub(crate) mod read;
