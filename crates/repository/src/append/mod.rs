//! The writer's half of an open repository: `appender` puts blocks into tails and closes them, `background` merges the index
//! and makes parity behind it.

pub(crate) mod appender;
pub(crate) mod background;
