//! What a user configures: the folders that the environment names, and `config.toml` with its repositories and sets.
//!
//! Flags come before the environment, and the environment before the file. A set is the exception that proves it: its
//! options stand for the flags of the backup that it describes.

mod agent;
mod document;
mod folders;
mod origin;
mod set;
mod settings;
mod time_span;
mod wrong;

pub(crate) use agent::{AgentSettings, Manner};
pub(crate) use document::{Document, Entry};
pub(crate) use folders::{Folders, below_home, default_data, home, repository_below_home};
pub(crate) use origin::Origin;
pub(crate) use set::{Hooks, Set};
pub(crate) use settings::{FILE, PasswordSettings, Settings};
pub(crate) use wrong::Wrong;
