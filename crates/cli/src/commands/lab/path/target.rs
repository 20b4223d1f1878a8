//! Where the path leads: to a directory's disk, to a server, or nowhere yet.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use holdall_diagnosis::LabServer;
use holdall_lab::net::NetPlan;
use holdall_sys::disk::device_of;

use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::lab_server;
use crate::open::{self, Patience, Where};

/// Streams of the wire's rows: as many as a backup uses.
const STREAMS: usize = 4;
/// How long each of them sends.
const WIRE_TIME: Duration = Duration::from_secs(1);

/// Where the path leads.
pub(super) enum Target {
    /// To the disk of a repository in this directory.
    Directory(PathBuf),
    /// To a server's disk.
    Server(LabServer),
    /// Nowhere: this machine has no repository.
    Nowhere,
}

/// What is measured of the wire.
pub(super) fn plan() -> NetPlan {
    NetPlan::memory(WIRE_TIME, STREAMS)
}

impl Target {
    /// The repository that was named, or else the paired server.
    ///
    /// # Errors
    /// If what was named makes no sense, there is no repository, or the server can not be reached.
    pub(super) fn find(app: &App) -> Result<Self> {
        let named = app.named_repository();
        Ok(match named.map(Where::parse).transpose()? {
            Some(Where::Directory(folder)) => {
                // What of it everybody may read says that there is one.
                open::place(app, Patience::default())?.place.wrappings()?;
                Self::Directory(folder)
            }
            None if app.pairings()?.default().is_none() => Self::Nowhere,
            Some(Where::Server { .. }) | None => {
                Self::Server(lab_server::connect(app, named, &plan(), app.interrupt.flag())?)
            }
        })
    }

    /// The server, if it is one.
    pub(super) fn server(&self) -> Option<&LabServer> {
        match self {
            Self::Server(far) => Some(far),
            Self::Directory(_) | Self::Nowhere => None,
        }
    }

    /// The repository's directory, if it lies in one.
    pub(super) fn folder(&self) -> Option<&Path> {
        match self {
            Self::Directory(folder) => Some(folder),
            Self::Server(_) | Self::Nowhere => None,
        }
    }

    /// What the last step's disk is called.
    pub(super) fn disk_name(&self) -> &'static str {
        match self {
            Self::Directory(_) => "repository disk, fsync",
            Self::Server(_) => "server disk, fsync",
            Self::Nowhere => "this disk, fsync",
        }
    }

    /// What is measured, and what is not, in a sentence.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Directory(folder) => format!(
                "The repository is a directory, so there is no wire and no server; the backups go into a \
                 temporary repository beside {}, with the server's work in this process.",
                folder.display()
            ),
            Self::Server(_) => "Every request of the backups goes to the server over TLS with as many \
                 bytes, and what would be stored is written to its disk, made durable and forgotten; \
                 checking and indexing are done here, so that nothing is stored there."
                .to_owned(),
            Self::Nowhere => "No repository was named and no server is paired: the backups go into a \
                 temporary repository on this computer, without any wire."
                .to_owned(),
        }
    }

    /// A directory to measure in, and what to say of it.
    ///
    /// # Errors
    /// If there is none that is on a disk.
    pub(super) fn place(&self, app: &App) -> Result<(PathBuf, Vec<String>)> {
        let Self::Directory(folder) = self else { return Ok((own_disk(app)?, Vec::new())) };
        let folder = std::path::absolute(folder)?;
        match beside(&folder) {
            Some(parent) => Ok((parent, Vec::new())),
            None => {
                let note = format!(
                    "{} is a file system of its own, or what it lies in can not be written: another \
                     disk than the repository's is measured.",
                    folder.display()
                );
                Ok((own_disk(app)?, vec![note]))
            }
        }
    }
}

/// The folder that one lies in, if that is on the same disk and can be written.
fn beside(folder: &Path) -> Option<PathBuf> {
    let parent = folder.parent()?;
    let is_same = device_of(folder).ok()? == device_of(parent).ok()?;
    let can_write = rustix::fs::access(parent, rustix::fs::Access::WRITE_OK).is_ok();
    (is_same && can_write).then(|| parent.to_owned())
}

/// The first usual place for what is temporary that lies on a disk.
fn own_disk(app: &App) -> Result<PathBuf> {
    app.folders.prepare_cache();
    let usual = [std::env::temp_dir(), PathBuf::from("/var/tmp")];
    let is_disk = |place: &PathBuf| holdall_sys::memory::is_ram_disk(place).is_ok_and(|ram| !ram);
    usual.into_iter().chain(app.folders.cache_to_work_in()).find(is_disk).ok_or_else(|| {
        Refusal::new(Exit::Failed, "no place to measure in: all usual ones lie in memory")
            .hint("name a folder on a disk in TMPDIR")
            .into()
    })
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
