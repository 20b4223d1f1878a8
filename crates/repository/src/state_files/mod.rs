//! Small files that say where something stands. What each says, its name says, or a checksum proves: `checksummed` is the
//! form of those that have content.
//!
//! `high_water_mark` is a position that only rises, `condemned` and `superseded` say which packs and blocks go, and
//! `scrub_round` how far a scrub has come. `erased` says that nothing is there any more.

pub(crate) mod checksummed;
pub(crate) mod condemned;
pub(crate) mod erased;
pub(crate) mod high_water_mark;
pub(crate) mod scrub_round;
pub(crate) mod superseded;
