//! A machine's state folder: what it remembers between two runs, in files that only their owner may read.
//!
//! It knows every file's name and format. Where the folder is, and what a person can do about a file that is damaged,
//! the command line knows.
//!
//! ```text
//! identity.json                  which machine this is
//! pairings.json                  the servers that it was paired with
//! keys/REPOSITORY[.reader]       key rings, or that they are in the system's keyring; the keys of recovery kits
//! directories/DIRECTORY          which repository lies in which directory
//! clear-parts/REPOSITORY         the last good configuration and wrappings
//! receipts/REPOSITORY[.amendment] what was acknowledged last
//! filled/REPOSITORY              sources that had something in them
//! lab/MADE-DIGEST.json           reports of the lab
//! runs/STARTED-RANDOM            what backups and checks came to
//! speed-history.jsonl            how fast the runs before were
//! agent/state.json               what the agent remembers
//! agent/pause.json               until when it is paused
//! agent/lock                     which process is the agent
//! agent/changes                  what may have changed, for the run that goes on
//! sets/SET.lock                  which sets are being backed up
//! ```
//!
//! Files are replaced as a whole, and durable once a call returns. Each may be kept by an older or newer holdall, so that
//! formats only ever grow.
//!
//! ```
//! use holdall_state::Identity;
//!
//! let state = tempfile::tempdir()?;
//! let made = Identity::load_or_make(state.path())?;
//! assert_eq!(Identity::load_or_make(state.path())?.machine, made.machine);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agent_files;
mod directories;
mod error;
mod filled_sources;
mod hex;
mod identity;
mod kept_keys;
mod kept_parts;
mod keyring;
mod lab_reports;
mod pairings;
pub mod private_file;
mod receipts;
mod run_history;
mod run_notes;
mod set_lock;

pub use agent_files::{AgentFiles, IsAgent};
pub use directories::{Directories, Known, directory_name};
pub use error::{Gone, StateError, StateFile};
pub use filled_sources::FilledSources;
pub use identity::Identity;
pub use kept_keys::{KeptKeys, KeyPlace};
pub use kept_parts::KeptParts;
pub use lab_reports::{KeptReports, read_report};
pub use pairings::{Pairing, Pairings};
pub use receipts::{KnownGone, NOT_THERE, Receipts};
pub use run_history::RunHistory;
pub use run_notes::{KnownRuns, RunGoingOn, run_goes_on};
pub use set_lock::{IsBackingUp, SetLock};
