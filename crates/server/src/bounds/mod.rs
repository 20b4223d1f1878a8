//! What others can make the server hold or wait for, and what bounds it: `limits` are the numbers, `work` the threads and
//! the memory for bodies, `buffers` keeps memory for the next body, `stranger_slots` bounds the connections of peers that
//! nobody knows, `refused_pairings` slows down guessing, `failures` keeps the log short. `source` is an address as far as
//! these tell addresses apart.

pub(crate) mod buffers;
pub(crate) mod failures;
pub(crate) mod limits;
pub(crate) mod refused_pairings;
pub(crate) mod source;
pub(crate) mod stranger_slots;
pub(crate) mod work;
