//! The path of a backup, one step after the other: what there is to be done, how fast it is found and
//! read, and how fast a plain copy of it is.
//!
//! All steps look at the same [`Sample`]: the source itself, or the first part of it in the order of
//! names where all of it would take too long. Nothing of a source is ever written, not even the time
//! of its last access where the user may ask for that. The backup itself is the engine's business; it
//! is compared with what is measured here.

mod copy;
mod read;
mod sample;
mod trees;
mod walk;

pub use copy::{CopyTarget, FileByFile, OneStream, measure_copy};
pub use read::{SampleRead, read_into_memory};
pub use sample::{Limits, Sample};
pub use trees::{Content, Shape, Tree};
pub use walk::{Walked, walk};

/// How the folders of measurements begin, which no step looks into.
pub const SCRATCH_PREFIX: &str = crate::scratch::PREFIX;
