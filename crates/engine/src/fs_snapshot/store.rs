//! Where snapshots are kept while they are read: in a subvolume at the top of their file system, which others cannot look
//! into.
//!
//! Each run has a subvolume of its own in there, which it holds a lock on. One that nobody holds is what is left of a run that
//! was killed, and is removed.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;

use holdall_sys::{Dir, Name, btrfs, lock, own_mounts};

use super::{FsSnapshotError, failed};

/// The subvolume with all snapshots that are read.
const ALL: &str = ".holdall-snapshots";

/// The snapshots of each device.
#[derive(Debug, Default)]
pub(super) struct Stores(BTreeMap<Vec<u8>, Store>);

impl Stores {
    /// Takes a snapshot of the subvolume at `path`; the mount of it is nowhere yet.
    pub(super) fn snapshot(
        &mut self,
        device: &[u8],
        path: &[u8],
    ) -> Result<OwnedFd, FsSnapshotError> {
        let store = match self.0.entry(device.to_vec()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let store = Store::open(device);
                entry.insert(store.map_err(failed("keep snapshots on", device))?)
            }
        };
        store.snapshot(device, path).map_err(failed("take a snapshot of", path))
    }
}

/// What a run keeps on one file system. It removes it at its end.
#[derive(Debug)]
struct Store {
    all: Dir,
    /// The name of this run's subvolume.
    name: String,
    /// It is this run's as long as it is locked.
    own: Dir,
    _lock: lock::Held,
    count: usize,
}

impl Store {
    fn open(device: &[u8]) -> io::Result<Self> {
        let all = all_of(&btrfs::open_top(device)?)?;
        sweep(&all)?;
        for number in 0.. {
            let name = number.to_string();
            match btrfs::create(&all, Name::new(name.as_bytes())?) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            }
            // Another run may take it for one that was killed until it is locked.
            if let Some((own, lock)) = locked(&all, &name)? {
                return Ok(Self { all, name, own, _lock: lock, count: 0 });
            }
        }
        Err(io::ErrorKind::StorageFull.into())
    }

    fn snapshot(&mut self, device: &[u8], path: &[u8]) -> io::Result<OwnedFd> {
        let name = self.count.to_string();
        btrfs::snapshot(&own_mounts::open_dir(path)?, &self.own, Name::new(name.as_bytes())?)?;
        self.count += 1;
        btrfs::mount_of(device, &format!("{ALL}/{}/{name}", self.name))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // What cannot be removed now, the next run removes.
        let _ = remove(&self.all, &self.own, self.name.as_bytes());
    }
}

/// The subvolume with all snapshots, in which nobody but root may look.
fn all_of(top: &Dir) -> io::Result<Dir> {
    let name = Name::new(ALL.as_bytes())?;
    match btrfs::create(top, name) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let all = top.open_child(name)?;
    let stat = all.stat_self()?;
    if !btrfs::is_subvolume(&stat) || stat.uid != 0 {
        let message = format!("{ALL} at its top is not what root made: rename it");
        return Err(io::Error::other(message));
    }
    file(&all)?.set_permissions(Permissions::from_mode(0o700))?;
    Ok(all)
}

/// Removes what runs left that were killed.
fn sweep(all: &Dir) -> io::Result<()> {
    for entry in all.entries()?.iter() {
        let name = entry.name().as_bytes();
        let Some((left, _lock)) = locked(all, &String::from_utf8_lossy(name))? else { continue };
        remove(all, &left, name)?;
    }
    Ok(())
}

/// A run's subvolume, locked; nothing if another holds it, or removed it meanwhile.
fn locked(all: &Dir, name: &str) -> io::Result<Option<(Dir, lock::Held)>> {
    let name = Name::new(name.as_bytes())?;
    let Ok(dir) = all.open_child(name) else { return Ok(None) };
    let Some(lock) = lock::Held::exclusive(file(&dir)?)? else { return Ok(None) };
    let is_there = all
        .stat(name)
        .is_ok_and(|now| dir.stat_self().is_ok_and(|opened| opened.device == now.device));
    Ok(is_there.then_some((dir, lock)))
}

fn remove(all: &Dir, own: &Dir, name: &[u8]) -> io::Result<()> {
    for entry in own.entries()?.iter() {
        btrfs::destroy(own, entry.name())?;
    }
    btrfs::destroy(all, Name::new(name)?)
}

fn file(dir: &Dir) -> io::Result<File> {
    Ok(dir.as_fd().try_clone_to_owned()?.into())
}
