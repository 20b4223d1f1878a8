//! What is mounted, and where.

use std::path::PathBuf;
use std::sync::Arc;

use holdall_engine::UnlockedRepository;

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// Whether what is stored is damaged; else it could not be asked for.
    pub is_damage: bool,
    /// Which path, and why.
    pub words: String,
}

/// What is mounted, and where.
pub struct MountOptions {
    /// The repository.
    pub access: Arc<UnlockedRepository>,
    /// An empty folder.
    pub directory: PathBuf,
    /// Whether other users may look, each at what the permissions in the snapshot allow. Else only the user who mounts
    /// may, and sees everything.
    pub allow_other: bool,
    /// Called on any thread: once for each damaged path, and once each time that the repository stops answering.
    pub tell: Box<dyn Fn(Trouble) + Send + Sync>,
    /// Called when it is not mounted any more.
    pub ended: Box<dyn FnOnce() + Send>,
}
