//! Sources of one moment: of each btrfs subvolume in them a snapshot is taken, and read in its place.
//!
//! A snapshot has empty directories where other subvolumes and other file systems are. So that these are not taken for
//! empty, everything is shown once more below a folder, in mounts that only this program sees: the snapshots lie there over
//! what they were taken of, and what was mounted in that lies over them again. Each source is read below that folder, by
//! the same path. `places` says what has to lie over what, and `store` keeps the snapshots until they are removed.

mod places;
mod store;

use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use holdall_format::Shown;
use holdall_sys::make_folders;
use holdall_sys::mounts::Mounts;
use holdall_sys::own_mounts::OwnMounts;

use self::places::{Located, Place};
use self::store::Stores;
pub(crate) use self::store::is_kept_at;
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
            Self::Foreign { device, names } => {
                let names: Vec<_> = names.iter().map(|name| Shown(name).to_string()).collect();
                write!(
                    out,
                    "{} at the top of {} holds what is not of holdall, which is left as it is and not backed up: {}",
                    store::ALL,
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

/// Sources whose files are of one moment, as long as this lives. The thread that has it sees its own mounts, and so do
/// those that it starts. Snapshots that could not be removed, since this was killed, the next one removes.
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
    let places = places::of(&located, &table)?;
    if places.is_empty() {
        return Err(FsSnapshotError::NoneThere);
    }
    mounts.show_all_below(view).map_err(failed("show snapshots below", view))?;
    for place in &places {
        put(place, view, &mounts, &mut stores)?;
    }
    // All of them, as what is read where it really is would show the folder with everything in it once more.
    let read = sources.iter().zip(&located).map(|(source, located)| match &located.real {
        Some(real) => Source { path: source.path.clone(), read_at: seen_below(view, real) },
        None => source.clone(),
    });
    let elsewhere = sources.iter().zip(&located).filter(|(_, located)| located.subvolume.is_none());
    let elsewhere = elsewhere.map(|(source, _)| FsSnapshotNote::Elsewhere(source.path.clone()));
    let foreign = stores.foreign().map(|(device, names)| FsSnapshotNote::Foreign {
        device: device.to_vec(),
        names: names.to_vec(),
    });
    Ok(FsSnapshot {
        sources: read.collect(),
        notes: elsewhere.chain(foreign).collect(),
        _mounts: mounts,
        _stores: stores,
    })
}

/// Where an absolute path is seen below the `view`.
fn seen_below(view: &[u8], path: &[u8]) -> Vec<u8> {
    plain_path(&[view, path].concat())
}

/// Puts what belongs at a place there, below the `view`.
fn put(
    place: &Place,
    view: &[u8],
    mounts: &OwnMounts,
    stores: &mut Stores,
) -> Result<(), FsSnapshotError> {
    let to = seen_below(view, &place.path);
    let shown = match &place.device {
        None => mounts.show(&place.path, &to),
        Some(device) => {
            let Some(mount) = stores.snapshot(device, &place.path)? else { return Ok(()) };
            mounts.attach(&mount, &to)
        }
    };
    match shown {
        // It was unmounted or removed before the snapshot around it was taken.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        shown => shown.map_err(failed("show", &place.path)),
    }
}
