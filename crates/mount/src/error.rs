//! Why nothing can be mounted.

use std::path::PathBuf;

use holdall_engine::EngineError;

/// Why nothing is mounted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// This holdall has no file system.
    #[error("this holdall was built without `mount`")]
    NotBuilt,
    /// Something is in the way, or nothing is there.
    #[error("{}: {reason}", directory.display())]
    Directory {
        /// Where it was to be mounted.
        directory: PathBuf,
        /// What it is.
        reason: String,
    },
    /// What was mounted there ended without being unmounted.
    #[error("{}: what was mounted there has ended", directory.display())]
    Dead {
        /// The folder.
        directory: PathBuf,
    },
    /// The kernel's part of FUSE is not there, or not for this user.
    #[error("/dev/fuse: {source}")]
    NoDevice {
        /// The system's answer.
        source: std::io::Error,
    },
    /// The program that mounts for ordinary users is not there.
    #[error("there is no fusermount3, without which only root can mount")]
    NoFusermount,
    /// An ordinary user may not let others look.
    #[error("/etc/fuse.conf does not allow --allow-other")]
    NotForOthers,
    /// The snapshots cannot be listed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The system refused to mount.
    #[error("cannot mount at {}: {source}", directory.display())]
    System {
        /// The folder.
        directory: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
}
