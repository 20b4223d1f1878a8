//! Which places of the sources are to be read as a snapshot has them, and what is mounted over those.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use holdall_sys::mounts::{Mount, Mounts};
use holdall_sys::{Name, btrfs, own_mounts};

use super::store::is_kept_at;
use super::{FsSnapshotError, failed};
use crate::{FOLLOWED, Source};

const BTRFS: &[u8] = b"btrfs";

/// Where a source really is.
#[derive(Debug)]
pub(super) struct Located {
    /// Its absolute path, without links on the way, if it is there.
    pub(super) real: Option<Vec<u8>>,
    /// The innermost subvolume that it lies in, and the device with it, if it lies on btrfs.
    pub(super) subvolume: Option<Place>,
}

/// What is to be put at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) path: Vec<u8>,
    /// The device of the subvolume that a snapshot is to be taken of; nothing for what is shown as it is.
    pub(super) device: Option<Vec<u8>>,
}

impl Located {
    /// # Errors
    /// [`FsSnapshotError::ReadOnly`].
    pub(super) fn of(source: &Source, table: &Mounts) -> Result<Self, FsSnapshotError> {
        let real = real(&source.read_at);
        let found = real.as_ref().and_then(|real| subvolume_around(real, table));
        match found {
            Some((mount, _)) if mount.is_of_read_only_file_system() => {
                Err(FsSnapshotError::ReadOnly(mount.point.clone()))
            }
            found => Ok(Self { real, subvolume: found.map(|(_, subvolume)| subvolume) }),
        }
    }
}

/// The path of a source without links on the way to it; nothing if its folder is not there.
fn real(read_at: &[u8]) -> Option<Vec<u8>> {
    let canonical = |path: &[u8]| {
        let path = Path::new(OsStr::from_bytes(path)).canonicalize().ok()?;
        Some(path.into_os_string().into_vec())
    };
    if let Some(link) = read_at.strip_suffix(FOLLOWED) {
        return canonical(link);
    }
    let path = Path::new(OsStr::from_bytes(read_at));
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return canonical(read_at);
    };
    let above = canonical(above.as_os_str().as_bytes())?;
    Some(below(&above, name.as_bytes()))
}

/// `rest`, which does not begin with a slash, below a path.
fn below(path: &[u8], rest: &[u8]) -> Vec<u8> {
    let path = path.strip_suffix(b"/").unwrap_or(path);
    [path, b"/", rest].concat()
}

fn is_within(path: &[u8], outer: &[u8]) -> bool {
    let outer = outer.strip_suffix(b"/").unwrap_or(outer);
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// The innermost subvolume around a path, if the mount shows the whole of it.
fn subvolume_around<'a>(real: &[u8], table: &'a Mounts) -> Option<(&'a Mount, Place)> {
    let mut path = Path::new(OsStr::from_bytes(real));
    if !path.symlink_metadata().ok()?.is_dir() {
        path = path.parent()?;
    }
    let mount = table.of_path(path).ok()??;
    if mount.file_system != BTRFS {
        return None;
    }
    let path = path.ancestors().map(|path| path.as_os_str().as_bytes()).find(|path| {
        is_subvolume(path) || !is_within(path, &mount.point) || *path == mount.point
    })?;
    let found = Place { path: path.to_vec(), device: Some(mount.source.clone()) };
    is_subvolume(path).then_some((mount, found))
}

fn is_subvolume(path: &[u8]) -> bool {
    let stat = own_mounts::open_dir(path).and_then(|dir| dir.stat_self());
    stat.is_ok_and(|stat| btrfs::is_subvolume(&stat))
}

/// All places, what lies in others behind them. None if no source lies in a subvolume.
pub(super) fn of(sources: &[Located], table: &Mounts) -> Result<Vec<Place>, FsSnapshotError> {
    let mut found = BTreeMap::new();
    for source in sources {
        let (Some(real), Some(subvolume)) = (&source.real, &source.subvolume) else { continue };
        found.insert(subvolume.path.clone(), subvolume.clone());
        add_nested(subvolume, real, &mut found)?;
        let mounted = table.iter().filter(|mount| is_within(&mount.point, real));
        for mount in mounted.filter(|mount| mount.point != subvolume.path) {
            // Where nothing can be written, all is of one moment as it is.
            let whole = mount.file_system == BTRFS
                && !mount.is_of_read_only_file_system()
                && is_subvolume(&mount.point);
            let place =
                Place { path: mount.point.clone(), device: whole.then(|| mount.source.clone()) };
            add_nested(&place, real, &mut found)?;
            found.insert(place.path.clone(), place);
        }
    }
    Ok(found.into_values().collect())
}

/// Whether snapshots are kept at this path.
fn is_store(path: &[u8]) -> bool {
    let path = Path::new(OsStr::from_bytes(path));
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return false };
    let above = own_mounts::open_dir(above.as_os_str().as_bytes());
    let kept = above.and_then(|above| {
        let stat = above.stat(Name::new(name.as_bytes())?)?;
        Ok(is_kept_at(&above, name.as_bytes(), &stat))
    });
    kept.unwrap_or(false)
}

/// Adds the subvolumes in one that lie in the source.
fn add_nested(
    outer: &Place,
    source: &[u8],
    found: &mut BTreeMap<Vec<u8>, Place>,
) -> Result<(), FsSnapshotError> {
    if outer.device.is_none() {
        return Ok(());
    }
    let nested = own_mounts::open_dir(&outer.path).and_then(|dir| btrfs::nested(&dir));
    let nested = match nested {
        // It was removed meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        nested => nested.map_err(failed("list the subvolumes in", &outer.path))?,
    };
    for path in nested {
        let path = below(&outer.path, &path);
        // Where something else is mounted over it, it is not seen.
        if !is_within(&path, source)
            || is_store(&path)
            || !is_subvolume(&path)
            || found.contains_key(&path)
        {
            continue;
        }
        let place = Place { path: path.clone(), device: outer.device.clone() };
        found.insert(path, place.clone());
        add_nested(&place, source, found)?;
    }
    Ok(())
}
