//! Where the path leads: to a directory's disk, to a server, or nowhere yet.

use std::path::{Path, PathBuf};
use std::time::Duration;

use holdall_lab::net::NetPlan;
use holdall_sys::disk::device_of;

use crate::LabServer;

/// Streams of the wire's rows: as many as a backup uses.
const STREAMS: usize = 4;
/// How long each of them sends.
const WIRE_TIME: Duration = Duration::from_secs(1);

/// Where the path leads.
pub enum Target {
    /// To the disk of a repository in this directory.
    Directory(PathBuf),
    /// To a server's disk.
    Server(LabServer),
    /// Nowhere: this machine has no repository.
    Nowhere,
}

/// What is measured of the wire.
pub fn plan() -> NetPlan {
    NetPlan::memory(WIRE_TIME, STREAMS)
}

impl Target {
    /// The server, if it is one.
    pub fn server(&self) -> Option<&LabServer> {
        match self {
            Self::Server(far) => Some(far),
            Self::Directory(_) | Self::Nowhere => None,
        }
    }

    /// The repository's directory, if it lies in one.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::Directory(folder) => Some(folder),
            Self::Server(_) | Self::Nowhere => None,
        }
    }

    /// What the last step's disk is called.
    pub fn disk_name(&self) -> &'static str {
        match self {
            Self::Directory(_) => "repository disk, fsync",
            Self::Server(_) => "server disk, fsync",
            Self::Nowhere => "this disk, fsync",
        }
    }

    /// What is measured, and what is not, in a sentence.
    pub fn words(&self) -> String {
        match self {
            Self::Directory(folder) => format!(
                "The repository is a directory, so there is no wire and no server; the backups go into a \
                 temporary repository beside {}, with the server's work in this process.",
                folder.display()
            ),
            Self::Server(_) => "Every request goes to the server over TLS at full size. The server writes the \
            data to its disk, makes it durable and deletes it; checking and indexing are done here, so that \
            nothing stays there."
                .to_owned(),
            Self::Nowhere => "No repository was named and no server is paired: the backups go into a \
                 temporary repository on this computer, without any wire."
                .to_owned(),
        }
    }
}

/// The folder that one lies in, if that is on the same disk and can be written.
pub fn beside(folder: &Path) -> Option<PathBuf> {
    let parent = folder.parent()?;
    let is_same = device_of(folder).ok()? == device_of(parent).ok()?;
    let can_write = rustix::fs::access(parent, rustix::fs::Access::WRITE_OK).is_ok();
    (is_same && can_write).then(|| parent.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_has_a_place_beside_it_unless_that_is_another_disk() {
        let dir = tempfile::tempdir().unwrap();
        let repository = dir.path().join("repository");
        std::fs::create_dir(&repository).unwrap();
        assert_eq!(beside(&repository), Some(dir.path().to_owned()));
        assert_eq!(beside(Path::new("/proc")), None);
    }
}
