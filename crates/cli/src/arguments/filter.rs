//! Which snapshots a command is about: `--machine`, `--path` and `--tag`, alike wherever they are.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use holdall_engine::Snapshot;

use crate::arguments::sources::{not_empty, snapshot_path};
use crate::exit::Refusal;

/// Who made a snapshot, what it was called, and what it is of.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Filter {
    /// Only snapshots of this machine: its id, the beginning of it, or its host name
    #[arg(long, value_name = "MACHINE", value_parser = not_empty)]
    machine: Option<String>,
    /// Only snapshots with this tag; given several times: with all of them
    #[arg(long = "tag", value_name = "TAG", value_parser = not_empty)]
    tags: Vec<String>,
    /// Only snapshots of this path, or of one above or below it
    // Some commands have an argument `path` of their own.
    #[arg(id = "of_path", long = "path", value_name = "PATH")]
    path: Option<PathBuf>,
}

/// A filter that can be asked.
pub(crate) struct Wanted<'a> {
    machine: Option<&'a str>,
    tags: &'a [String],
    path: Option<Vec<u8>>,
}

impl Filter {
    /// Checks what was typed, before any repository is opened.
    ///
    /// # Errors
    /// [`Refusal`] for a path that is empty.
    pub(crate) fn resolve(&self) -> Result<Wanted<'_>, Refusal> {
        let path = self.path.as_ref().map(|path| snapshot_path(path.as_os_str().as_bytes()));
        let (machine, tags) = (self.machine.as_deref(), &self.tags[..]);
        Ok(Wanted { machine, tags, path: path.transpose()? })
    }
}

impl Wanted<'_> {
    /// Whether it takes everything.
    pub(crate) fn is_empty(&self) -> bool {
        !self.names_machine() && self.path.is_none() && self.tags.is_empty()
    }

    /// Whether it says who made the snapshots.
    pub(crate) fn names_machine(&self) -> bool {
        self.machine.is_some()
    }

    /// Whether a snapshot is one of those.
    pub(crate) fn takes(&self, snapshot: &Snapshot) -> bool {
        let of_machine = |wanted: &str| {
            snapshot.machine.to_string().starts_with(wanted) || snapshot.secret.host == wanted
        };
        self.machine.is_none_or(of_machine)
            && self.path.as_ref().is_none_or(|path| snapshot.holds(path))
            && self.tags.iter().all(|tag| snapshot.secret.tags.contains(tag))
    }
}
