//! What tests of several crates share: trees that have everything a file system can hold, a
//! comparison that misses nothing, ways to make processes and networks fail, and to leave out what a
//! computer cannot test.
//!
//! It is a dev-dependency only. Trees are made and read through [`holdall_sys`], so that neither a
//! deep path nor a hostile name stops a test. Whatever looks random comes from a seed.
//!
//! ```
//! use holdall_testkit::{CompareOptions, FidelitySizes, compare_trees, fidelity_tree};
//!
//! let folder = tempfile::tempdir()?;
//! let left_out = fidelity_tree(folder.path(), &FidelitySizes::small())?;
//! assert!(left_out.is_empty() || holdall_sys::users::effective_uid() != 0);
//! assert_eq!(compare_trees(folder.path(), folder.path(), &CompareOptions::default()), []);
//! # Ok::<(), std::io::Error>(())
//! ```

mod alone;
mod anybody;
mod chaos;
mod clock;
mod compare;
mod delay;
mod disk;
mod disturber;
mod fidelity;
mod folder;
mod found;
mod links;
mod loop_disk;
mod needs;
mod process;
mod random;
mod random_tree;
mod room;
mod slice;
mod small_files;
mod swapper;

pub use alone::{is_alone, this_test};
pub use anybody::Anybody;
pub use chaos::ChaosProxy;
pub use clock::FakeClock;
pub use compare::{CompareOptions, Difference, Field, compare_trees};
pub use delay::DelayProxy;
pub use disk::{Choice, History, Image, Moment, State, Watch, choices, failing, memory, states};
pub use disturber::Disturber;
pub use fidelity::{FidelitySizes, LeftOut, fidelity_tree};
pub use folder::{copy_folder, files_below};
pub use found::only_file;
pub use links::{End, Links};
pub use loop_disk::LoopDisk;
pub use needs::{has_strace, is_there};
pub use process::Process;
pub use random::Random;
pub use random_tree::{Change, RandomTreeSizes, mutate_tree, random_tree};
pub use room::limit_memory;
pub use slice::{Slice, setting};
pub use small_files::{SmallFiles, small_files};
pub use swapper::Swapper;
