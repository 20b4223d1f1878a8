//! Sources of one moment: of each btrfs subvolume in them a snapshot is taken, and read in its place. The files of one
//! subvolume are of one moment; those of another may be of one a little later, as snapshots are taken one after the other.
//!
//! A snapshot has empty directories where other subvolumes and other file systems are. So that these are not taken for
//! empty, everything is shown once more below a folder, in mounts that only this program sees: the snapshots lie there over
//! what they were taken of, and what was mounted in that lies over them again. Each source is read below that folder, by
//! the same path. `places` says what has to lie over what, and `store` keeps the snapshots until they are removed.

mod places;
mod store;

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use holdall_format::Shown;
use holdall_sys::mounts::{self, Mounts};
use holdall_sys::own_mounts::{OwnMounts, open_dir};
use holdall_sys::{Dir, make_folders};

use self::places::{Lies, Located, Origin, Places, below};
use self::store::Stores;
use crate::backup::snapshots_place;
use crate::{Source, plain_path};

/// Why there is no snapshot to read.
#[derive(Debug, thiserror::Error)]
pub enum FsSnapshotError {
    /// None of the sources is in a subvolume.
    #[error("none of what is to be backed up lies on btrfs")]
    NoneThere,
    /// The file system with a source is mounted read-only, and is to stay so.
    #[error("{} is mounted read-only, and snapshots would have to be written there", Shown(.0))]
    ReadOnly(
        /// Where it is mounted.
        Vec<u8>,
    ),
    /// A file is swapped to in the subvolume that a source lies in.
    #[error(
        "cannot take a snapshot of {}: the swap file {} is in use; put it into a subvolume of its own, or end its use \
         (`swapoff`)",
        Shown(subvolume),
        Shown(file)
    )]
    Swap {
        /// Where the subvolume is.
        subvolume: Vec<u8>,
        /// Where the file is.
        file: Vec<u8>,
    },
    /// The system did not do what was asked.
    #[error("cannot {what}: {source}")]
    System {
        /// What was asked, to be put behind "cannot".
        what: String,
        /// What the system says.
        source: io::Error,
    },
}

/// What is not read from a snapshot, or stands in the way of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FsSnapshotNote {
    /// A source that lies on another file system is read as it is.
    Elsewhere(
        /// Where it is recorded.
        Vec<u8>,
    ),
    /// A file of btrfs that is mounted on another one is read as it is.
    MountedFile(
        /// Where it is mounted.
        Vec<u8>,
    ),
    /// A subvolume in that of a source is read as it is, since a file in it is swapped to.
    Swap {
        /// Where the subvolume is.
        subvolume: Vec<u8>,
        /// Where the file is.
        file: Vec<u8>,
    },
    /// Where snapshots are kept is something that no run made.
    Foreign {
        /// The file system's device.
        device: Vec<u8>,
        /// What lies there.
        names: Vec<Vec<u8>>,
    },
}

impl fmt::Display for FsSnapshotNote {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elsewhere(path) => {
                write!(out, "{} does not lie on btrfs and is read as it is", Shown(path))
            }
            Self::MountedFile(point) => {
                write!(out, "{} is a file that is mounted there and is read as it is", Shown(point))
            }
            Self::Swap { subvolume, file } => write!(
                out,
                "the swap file {} is in use, so that there is no snapshot of {}, which is read as it is",
                Shown(file),
                Shown(subvolume)
            ),
            Self::Foreign { device, names } => {
                let names: Vec<_> = names.iter().map(|name| Shown(name).to_string()).collect();
                write!(
                    out,
                    "{} at the top of {} holds what holdall did not make, which stays as it is and is not backed up: {}",
                    snapshots_place::ALL,
                    Shown(device),
                    names.join(", ")
                )
            }
        }
    }
}

fn failed(what: &str, path: &[u8]) -> impl FnOnce(io::Error) -> FsSnapshotError {
    let what = format!("{what} {}", Shown(path));
    |source| FsSnapshotError::System { what, source }
}

/// Sources whose files are of one moment in each subvolume, as long as this lives. The thread that has it sees its own mounts,
/// and so do those that it starts. Snapshots that could not be removed, since this was killed, the next one removes.
#[derive(Debug)]
pub struct FsSnapshot {
    /// What to back up.
    pub sources: Vec<Source>,
    /// What is to be known of them.
    pub notes: Vec<FsSnapshotNote>,
    // In this order, as the snapshots are removed when nothing of them is mounted any more.
    _mounts: OwnMounts,
    _stores: Stores,
}

/// Takes a snapshot of each subvolume that the sources have a part in. All is shown below `folder`, which is made.
///
/// # Errors
/// [`FsSnapshotError`]; nothing is left behind.
pub fn take_fs_snapshot(sources: &[Source], folder: &Path) -> Result<FsSnapshot, FsSnapshotError> {
    let view = folder.as_os_str().as_bytes();
    make_folders(folder, 0o700).map_err(failed("make the folder", view))?;
    let mut stores = Stores::default();
    let mounts = OwnMounts::enter().map_err(failed("show snapshots below", view))?;
    let table = Mounts::read().map_err(failed("read", b"the mount table"))?;
    let located = sources.iter().map(|source| Located::of(source, &table));
    let located = located.collect::<Result<Vec<_>, _>>()?;
    if !located.iter().any(|located| matches!(located.lies, Lies::Within(..))) {
        return Err(FsSnapshotError::NoneThere);
    }
    mounts.show_all_below(view).map_err(failed("show snapshots below", view))?;
    let places = Places::of(&located, &table);
    let mut showing =
        Showing { view, mounts: &mounts, stores: &mut stores, places, notes: Vec::new() };
    while let Some((path, origin)) = showing.places.next() {
        showing.put(&path, origin)?;
    }
    let Showing { places, notes, .. } = showing;
    let files = places.files.into_iter().map(FsSnapshotNote::MountedFile);
    // All of them, as what is read where it really is would show the folder with everything in it once more.
    let read = sources.iter().zip(&located).map(|(source, located)| match &located.real {
        Some(real) => Source { path: source.path.clone(), read_at: seen_below(view, real) },
        None => source.clone(),
    });
    let elsewhere = sources.iter().zip(&located);
    let elsewhere = elsewhere.filter(|(_, located)| matches!(located.lies, Lies::Elsewhere));
    let elsewhere = elsewhere.map(|(source, _)| FsSnapshotNote::Elsewhere(source.path.clone()));
    let foreign = stores.foreign().map(|(device, names)| FsSnapshotNote::Foreign {
        device: device.to_vec(),
        names: names.to_vec(),
    });
    Ok(FsSnapshot {
        sources: read.collect(),
        notes: elsewhere.chain(notes).chain(files).chain(foreign).collect(),
        _mounts: mounts,
        _stores: stores,
    })
}

/// Where an absolute path is seen below the `view`.
fn seen_below(view: &[u8], path: &[u8]) -> Vec<u8> {
    plain_path(&[view, path].concat())
}

/// What everything is put with that is shown below the view.
struct Showing<'a> {
    view: &'a [u8],
    mounts: &'a OwnMounts,
    stores: &'a mut Stores,
    places: Places,
    notes: Vec<FsSnapshotNote>,
}

impl Showing<'_> {
    /// Puts what belongs at a path there. The subvolumes in it are listed when its snapshot was taken: what is new since is not
    /// in it, either.
    fn put(&mut self, path: &[u8], origin: Option<Origin>) -> Result<(), FsSnapshotError> {
        let Some(origin) = origin else { return self.show_as_it_is(path) };
        let store = self.stores.on(&origin.device);
        let store = store.map_err(failed("keep snapshots on", &origin.device))?;
        let found = match store.find(&origin.root) {
            // It was removed meanwhile; or it is a mount of what was removed.
            Err(error) if is_gone(&error) => return self.show_as_it_is(path),
            found => found.map_err(failed("look for", path))?,
        };
        match store.snapshot(&found.subvolume) {
            Ok(name) => {
                let mount = store.mount_of(&name).map_err(failed("show", path))?;
                self.attach(&mount, &found.rest, path)?;
            }
            Err(error) if is_gone(&error) => return self.show_as_it_is(path),
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                self.note_swap(&found.subvolume, path, error)?;
                self.show_as_it_is(path)?;
            }
            Err(error) => return Err(failed("take a snapshot of", path)(error)),
        }
        let nested = found.nested().map_err(failed("list the subvolumes in", path))?;
        for rest in nested {
            let root = below(&origin.root, &rest);
            if root.strip_prefix(b"/") != Some(snapshots_place::ALL.as_bytes()) {
                let device = origin.device.clone();
                self.places.add_nested(below(path, &rest), Origin { device, root });
            }
        }
        Ok(())
    }

    /// Shows a snapshot, or the folder `rest` in it, at a path.
    fn attach(&self, mount: &OwnedFd, rest: &[u8], path: &[u8]) -> Result<(), FsSnapshotError> {
        let to = seen_below(self.view, path);
        let attached = self.mounts.attach(mount, &to).and_then(|()| match rest {
            [] => Ok(()),
            rest => self.mounts.show(&below(&to, rest), &to),
        });
        shown(attached, path)
    }

    /// Notes that there is no snapshot of the subvolume at a path, as a file in it is swapped to.
    ///
    /// # Errors
    /// A source lies in this subvolume, or there is no such file.
    fn note_swap(
        &mut self,
        subvolume: &Dir,
        path: &[u8],
        error: io::Error,
    ) -> Result<(), FsSnapshotError> {
        let device = subvolume.stat_self().map_err(failed("read", path))?.device;
        let is_in_it = |file: &Vec<u8>| {
            let folder = Path::new(OsStr::from_bytes(file)).parent();
            let folder = folder.map(|folder| open_dir(folder.as_os_str().as_bytes()));
            let folder = folder.and_then(|folder| folder.ok()?.stat_self().ok());
            folder.is_some_and(|folder| folder.device == device)
        };
        let files = mounts::swap_files().map_err(failed("read", b"/proc/swaps"))?;
        let Some(file) = files.into_iter().find(is_in_it) else {
            return Err(failed("take a snapshot of", path)(error));
        };
        let subvolume = path.to_vec();
        if self.places.is_around_source(path) {
            return Err(FsSnapshotError::Swap { subvolume, file });
        }
        self.notes.push(FsSnapshotNote::Swap { subvolume, file });
        Ok(())
    }

    fn show_as_it_is(&self, path: &[u8]) -> Result<(), FsSnapshotError> {
        shown(self.mounts.show(path, &seen_below(self.view, path)), path)
    }
}

fn shown(done: io::Result<()>, path: &[u8]) -> Result<(), FsSnapshotError> {
    match done {
        // It was unmounted or removed before the snapshot around it was taken.
        Err(error) if is_gone(&error) => Ok(()),
        done => done.map_err(failed("show", path)),
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
