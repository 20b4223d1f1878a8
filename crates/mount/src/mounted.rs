//! Mounting, and what runs for as long as it is mounted.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use fuser::{Config, MountOption, Session, SessionACL};
use holdall_engine::EngineError;
use holdall_sys::thread;

use crate::filesystem::Snapshots;
use crate::shared::Shared;
use crate::troubles::Troubles;
use crate::unmount::{FUSERMOUNT, unmount};
use crate::{MountError, MountOptions};

/// The kernel's part of FUSE.
const DEVICE: &str = "/dev/fuse";
/// Requests that are answered at the same time.
const THREADS: usize = 8;
/// How often it is looked whether the repository can rest.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A file system that is mounted for as long as this lives.
pub struct Mounted {
    directory: PathBuf,
    serving: Option<JoinHandle<()>>,
    /// Whether somebody unmounted it.
    has_ended: Arc<AtomicBool>,
}

impl Mounted {
    /// Whether there is a file system.
    pub const IS_BUILT: bool = true;

    /// Looks whether something can be mounted there.
    ///
    /// # Errors
    /// [`MountError`], with what is in the way.
    pub fn check(directory: &Path) -> Result<(), MountError> {
        check_directory(directory)?;
        let device: io::Result<File> = OpenOptions::new().read(true).write(true).open(DEVICE);
        device.map_err(|source| MountError::NoDevice { source })?;
        if !rustix::process::geteuid().is_root() {
            let mut command = Command::new(FUSERMOUNT);
            let version = command.arg("-V").stdin(Stdio::null()).output();
            version.map_err(|_| MountError::NoFusermount)?;
        }
        Ok(())
    }

    /// Mounts. When it returns, the snapshots can be seen.
    ///
    /// # Errors
    /// [`MountError`].
    pub fn start(options: MountOptions) -> Result<Self, MountError> {
        let MountOptions { access, directory, allow_other, tell, ended } = options;
        Self::check(&directory)?;
        let system = |source| MountError::System { directory: directory.clone(), source };
        let directory = fs::canonicalize(&directory).map_err(system)?;
        let shared = Arc::new(Shared::new(access, Troubles::new(tell))?);
        let snapshots = Snapshots::new(Arc::clone(&shared));
        let session = Session::new(snapshots, &directory, &config(allow_other));
        let session = session.map_err(|error| refused(error, &directory, allow_other))?;
        let has_ended = Arc::new(AtomicBool::new(false));
        let ending = Arc::clone(&has_ended);
        let serving = thread::start_alone(move || {
            let resting = let_rest(shared);
            // Why it ended, nobody can be told: whoever unmounted it knows.
            let _ = session.run();
            drop(resting);
            ending.store(true, Ordering::Release);
            ended();
        });
        let starting = |error| EngineError::io("starting a thread", error);
        Ok(Self { directory, serving: Some(serving.map_err(starting)?), has_ended })
    }

    /// Unmounts; says whether something in it was in use. That goes on to see it until this process ends.
    ///
    /// # Errors
    /// The system's. It is then mounted still, until this process ends.
    pub fn unmount(mut self) -> Result<bool, MountError> {
        let serving = self.serving.take();
        let was_in_use = self
            .take_away()
            .map_err(|source| MountError::System { directory: self.directory.clone(), source })?;
        if let Some(serving) = serving.filter(|_| !was_in_use) {
            // A thread that panicked serves nothing either.
            let _ = serving.join();
        }
        Ok(was_in_use)
    }

    /// Unmounts it unless somebody did; says whether it was in use.
    fn take_away(&self) -> io::Result<bool> {
        let is_over = || self.has_ended.load(Ordering::Acquire);
        if is_over() {
            return Ok(false);
        }
        unmount(&self.directory).or_else(|error| if is_over() { Ok(false) } else { Err(error) })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.serving.is_some() {
            // Nobody is left who could be told.
            let _ = self.take_away();
        }
    }
}

fn check_directory(directory: &Path) -> Result<(), MountError> {
    let unusable = |reason: &str| MountError::Directory {
        directory: directory.to_owned(),
        reason: reason.to_owned(),
    };
    let mut entries = fs::read_dir(directory).map_err(|error| match error.kind() {
        ErrorKind::NotConnected => MountError::Dead { directory: directory.to_owned() },
        ErrorKind::NotADirectory => unusable("this is no folder"),
        _ => unusable(&error.to_string()),
    })?;
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(unusable("this folder is not empty")),
    }
}

fn config(allow_other: bool) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("holdall".to_owned()),
        MountOption::RO,
        MountOption::NoDev,
        MountOption::NoSuid,
        MountOption::NoAtime,
    ];
    if allow_other {
        config.acl = SessionACL::All;
        config.mount_options.push(MountOption::DefaultPermissions);
    }
    config.n_threads = Some(THREADS);
    config
}

fn refused(source: io::Error, directory: &Path, allow_other: bool) -> MountError {
    match source.kind() {
        ErrorKind::PermissionDenied if allow_other => MountError::NotForOthers,
        _ => MountError::System { directory: directory.to_owned(), source },
    }
}

/// Lets the repository rest between reads, until what this gives is dropped.
fn let_rest(shared: Arc<Shared>) -> Option<Sender<()>> {
    let (ending, ended) = channel();
    let rest = move || {
        while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(LOOK_EVERY) {
            shared.rest();
        }
    };
    // Without a thread it is kept from others until it is unmounted.
    thread::start_alone(rest).ok().map(|_| ending)
}
