//! What the measuring of a path is given by whoever wants it.

use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::Arc;

use holdall_engine::{BackupOptions, Run, UnlockedRepository};
use holdall_lab::Measurement;
use holdall_protocol::Repository;

use super::ran::Ran;

/// Puts a repository behind something.
pub type PutBehind<'a> = dyn Fn(Arc<dyn Repository>) -> Arc<dyn Repository> + 'a;

/// The client whose backups are measured.
pub trait Client {
    /// Makes a repository in a folder, with keys of its own, and opens it `behind` what requests are to go through.
    ///
    /// # Errors
    /// What keeps it from being made.
    fn repository(
        &self,
        folder: &Path,
        behind: &PutBehind<'_>,
    ) -> Result<UnlockedRepository, Box<dyn Error + Send + Sync>>;

    /// A new run, which ends when the user wishes that.
    fn run(&self) -> Arc<Run>;

    /// Does work while the progress of a run is shown.
    fn watched<R>(&self, run: &Run, work: impl FnOnce() -> R) -> R;

    /// What this computer, its user and its clock say to a backup.
    fn in_environment(&self, options: BackupOptions) -> BackupOptions;
}

/// Who is told what is measured, as soon as it is.
pub trait Telling {
    /// A step.
    ///
    /// # Errors
    /// If it cannot be told.
    fn row(&mut self, measurement: &Measurement) -> io::Result<()>;

    /// A backup or a restore, such as `first backup`, of what, and whether its bytes were moved.
    ///
    /// # Errors
    /// If it cannot be told.
    fn ran(&mut self, what: (&str, bool), of: &str, ran: &Ran) -> io::Result<()>;

    /// A first backup, whose speed is that of the path.
    fn counts(&mut self, ran: &Ran);

    /// One more sentence for the end.
    fn note(&mut self, note: &str);
}
