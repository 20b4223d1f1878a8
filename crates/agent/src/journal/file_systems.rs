//! The file systems that sources lie on, watched as a whole, and what the kernel tells of them.
//!
//! An event names a directory by a handle. Where that lies, it is asked when the event is read: a directory that was renamed since
//! then is found at its new place, and the rename has told that anything below that may have changed. One that is gone has
//! changed its parent.
//!
//! A mount is opened only while events of it are read, so that it can be unmounted at any other time.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use holdall_sys::fanotify::{Fanotify, FileSystem, Found, Queue};
use holdall_sys::fanotify_events::FileSystemId;
use holdall_sys::mounts::{Mount, MountWatch, Mounts};
use holdall_sys::open_files::{Image, OpenFiles};
use holdall_sys::{Dir, Name};

use super::batch::Batch;
use super::disk::{Disk, Later, OwnHandle, changed, give_all_up, path};
use super::reason::Reason;
use super::set::{SetJournal, Spot};

/// Those whose files have lasting handles, and whose changes are all told.
const WATCHABLE: [&[u8]; 6] = [b"ext2", b"ext3", b"ext4", b"xfs", b"tmpfs", b"f2fs"];
/// How much is read at once.
const READ_BYTES: usize = 256 << 10;

/// The file systems, and the watch.
pub(super) struct FileSystems {
    watch: Fanotify,
    mount_watch: MountWatch,
    mounts: Mounts,
    disks: Vec<Disk>,
    /// What events may still call those that are not watched any more.
    retired: HashSet<FileSystemId>,
    later: Later,
    buffer: Vec<u8>,
}

impl FileSystems {
    /// # Errors
    /// Why changes cannot be watched.
    pub(super) fn new(queue: Queue) -> io::Result<Self> {
        let (watch, mount_watch) = (Fanotify::new(queue)?, MountWatch::new()?);
        Ok(Self {
            watch,
            mount_watch,
            mounts: Mounts::read()?,
            disks: Vec::new(),
            retired: HashSet::new(),
            later: Later::default(),
            buffer: vec![0; READ_BYTES],
        })
    }

    pub(super) fn watch(&self) -> &Fanotify {
        &self.watch
    }

    /// Brings all sets up to this moment; `at` is the one that a run begins of.
    pub(super) fn bring_up(&mut self, sets: &mut [SetJournal], at: usize) {
        let brought = self.follow_mounts(sets).and_then(|()| {
            self.take_in(sets)?;
            self.look_at_later(sets);
            self.look_at_open_files(sets, at)
        });
        if let Err(error) = brought {
            give_all_up(sets, &Reason::Doubt(error.to_string()));
        }
    }

    /// Looks at what is mounted, and watches what lies below sources.
    fn follow_mounts(&mut self, sets: &mut [SetJournal]) -> io::Result<()> {
        let has_changed = self.mount_watch.has_changed()?;
        let mounts = Mounts::read()?;
        if has_changed && mounts == self.mounts {
            give_all_up(sets, &Reason::Mounts);
        }
        self.mounts = mounts;
        let watched = self.watch.watched()?;
        let (kept, gone) = std::mem::take(&mut self.disks)
            .into_iter()
            .partition(|disk| watched.contains(&disk.device));
        self.disks = kept;
        self.retired.extend(gone.into_iter().map(|disk: Disk| disk.id));
        let mut looked_at = HashMap::new();
        for set in sets {
            let Some((carriers, below)) = relevant(&self.mounts, set.real_sources()) else {
                set.give_up(Reason::Mounts);
                continue;
            };
            let below_is_wanted = !set.set.one_file_system;
            let carriers = carriers.into_iter().map(|mount| (mount, true));
            let all = carriers.chain(below.into_iter().map(|mount| (mount, below_is_wanted)));
            let mut spots = Vec::new();
            for (mount, is_wanted) in all {
                let (unwatched, is_new) = match is_wanted {
                    true => {
                        let looked_at = looked_at.entry(mount.device);
                        looked_at.or_insert_with(|| self.watch_mount(&mount)).clone()
                    }
                    false => (None, false),
                };
                spots.push(Spot {
                    mount: mount.id,
                    device: mount.device,
                    root: mount.root,
                    point: path(&mount.point),
                    unwatched,
                    is_new,
                });
            }
            set.mounts_are(spots);
        }
        Ok(())
    }

    /// Watches the file system of a mount: why that is not possible, and whether it was not watched before.
    fn watch_mount(&mut self, mount: &Mount) -> (Option<String>, bool) {
        let is_known = self.disks.iter().any(|disk| disk.device == mount.device);
        match self.try_to_watch(mount) {
            Ok(()) => (None, !is_known),
            Err(why) => (Some(why), false),
        }
    }

    fn try_to_watch(&mut self, mount: &Mount) -> Result<(), String> {
        let kind = String::from_utf8_lossy(&mount.file_system).into_owned();
        if !WATCHABLE.contains(&&mount.file_system[..]) {
            return Err(kind);
        }
        let told = |error: io::Error| format!("{kind}: {error}");
        // A folder above it may be renamed, and it lies where it lay.
        if mount.root != b"/" {
            return Err(format!("{kind}, of which only a folder is mounted there"));
        }
        let whole = || {
            let same = self.mounts.iter().filter(|other| other.device == mount.device);
            same.filter(|other| other.root == b"/")
        };
        let is_reached = |other: &&Mount| {
            let found = self.mounts.of_path(&path(&other.point));
            found.is_ok_and(|found| found.is_some_and(|found| found.id == other.id))
        };
        let Some(reached) = whole().find(is_reached) else {
            return Err(format!("{kind}, which something else is mounted over"));
        };
        let point = path(&reached.point);
        let id = FileSystem::at(&point).map_err(told)?.id();
        if self.disks.iter().any(|disk| disk.id == id && disk.device != mount.device) {
            return Err(format!("{kind}, and another one has the same number"));
        }
        let others = whole().filter(|other| other.id != reached.id);
        let others = others.map(|other| path(&other.point)).collect();
        match self.disks.iter_mut().find(|disk| disk.device == mount.device) {
            Some(disk) => (disk.point, disk.others) = (point, others),
            None => {
                self.watch.watch(&point).map_err(told)?;
                self.retired.remove(&id);
                self.disks.push(Disk { id, device: mount.device, point, others });
            }
        }
        Ok(())
    }

    /// Reads the events that wait at this moment.
    ///
    /// # Errors
    /// What the system says; then events may be lost.
    pub(super) fn take_in(&mut self, sets: &mut [SetJournal]) -> io::Result<()> {
        let mut waiting = self.watch.waiting()?;
        while waiting > 0 {
            let read = self.watch.read(&mut self.buffer)?;
            if read.is_empty() {
                break;
            }
            let mut batch = Batch::new(&self.disks, &self.retired, &mut self.later);
            waiting = waiting.saturating_sub(batch.take(read, sets));
        }
        Ok(())
    }

    /// Looks at files that were not told of to the end. Those that are open stay to be looked at.
    fn look_at_later(&mut self, sets: &mut [SetJournal]) {
        for handle in std::mem::take(&mut self.later.new_names) {
            let Some((disk, found)) = self.find(&handle, sets) else { continue };
            match found.stat() {
                // Any of them may lie in a folder that nothing else was told of.
                Ok(stat) if stat.nlink > 1 => disk.give_up(sets, &Reason::SeveralNames),
                _ => disk.note(&found, sets),
            }
        }
        let mut open = std::mem::take(&mut self.later.open);
        open.retain(|handle| {
            let found = self.find(handle, sets);
            found.inspect(|(disk, found)| disk.note(found, sets)).is_some()
        });
        self.later.open = open;
    }

    /// A file that is still there.
    fn find(&self, handle: &OwnHandle, sets: &mut [SetJournal]) -> Option<(&Disk, Found)> {
        let disk = self.disks.iter().find(|disk| disk.id == handle.file_system)?;
        match disk.open().and_then(|opened| opened.open(&handle.borrowed())) {
            Ok(found) => Some((disk, found?)),
            Err(error) => {
                disk.give_up(sets, &Reason::Doubt(error.to_string()));
                None
            }
        }
    }

    /// Looks at what is open for writing where a set lies.
    fn look_at_open_files(&self, sets: &mut [SetJournal], at: usize) -> io::Result<()> {
        let Some(set) = sets.get_mut(at..=at) else { return Ok(()) };
        let is_wanted = |device| set[0].lies_on(device) && self.disk_of(device).is_some();
        let open = OpenFiles::look(is_wanted)?;
        if !open.is_complete {
            give_all_up(set, &Reason::OpenFiles);
        }
        for file in open.files {
            let Some(disk) = self.disk_of(file.device) else { continue };
            match disk.open()?.locate(&file.link) {
                Ok(Some(found)) => disk.note(&found, set),
                // It was closed.
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => give_all_up(set, &Reason::Doubt(error.to_string())),
            }
        }
        for image in open.images {
            self.look_at_image(&image, set)?;
        }
        for folder in open.upper_directories {
            match is_known(&folder) {
                true => changed(set, &folder, None, true),
                // Such as one that was mounted within a container.
                false => give_all_up(set, &Reason::OpenFiles),
            }
        }
        Ok(())
    }

    /// Notes that the image of a loop device may have changed. Its path may be one that was seen in another mount namespace, or
    /// be gone while the image has another one: where it does not lead there, the image may be any file.
    fn look_at_image(&self, image: &Image, set: &mut [SetJournal]) -> io::Result<()> {
        let is_it = identity(&image.path).is_ok_and(|found| image.identity == Some(found));
        let disk = image.identity.and_then(|(device, _)| self.disk_of(device));
        let Some(disk) = disk.filter(|_| is_it) else {
            give_all_up(set, &Reason::OpenFiles);
            return Ok(());
        };
        match disk.open()?.locate(&image.path) {
            Ok(Some(found)) => disk.note(&found, set),
            _ => disk.give_up(set, &Reason::OpenFiles),
        }
        Ok(())
    }

    fn disk_of(&self, device: u64) -> Option<&Disk> {
        self.disks.iter().find(|disk| disk.device == device)
    }
}

/// The device and the inode of a file.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let folder = Dir::on_the_way(folder.as_os_str().as_bytes())?;
    let found = folder.stat(Name::new(name.as_bytes())?)?;
    Ok((found.device, found.inode))
}

/// Where an overlay keeps what was written to it, if it is known here where that is: a path from the root on, that is there.
fn is_known(upper: &Path) -> bool {
    upper.is_absolute() && upper.is_dir()
}

/// The mounts that sources lie on, and those below sources; nothing where a source's is not known.
fn relevant(mounts: &Mounts, sources: &[PathBuf]) -> Option<(Vec<Mount>, Vec<Mount>)> {
    let is_below =
        |mount: &&Mount| sources.iter().any(|source| path(&mount.point).starts_with(source));
    // What is mounted above it by name may be hidden.
    let carrier = |source: &PathBuf| {
        let is_link = source.symlink_metadata().is_ok_and(|there| there.is_symlink());
        let folder = source.parent().filter(|_| is_link).unwrap_or(source);
        mounts.of_path(folder).ok().flatten().map(|mount| mount.id)
    };
    let carriers: HashSet<_> = sources.iter().map(carrier).collect::<Option<_>>()?;
    let (carriers, others): (Vec<_>, Vec<_>) =
        mounts.iter().cloned().partition(|mount| carriers.contains(&mount.id));
    Some((carriers, others.into_iter().filter(|mount| is_below(&mount)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overlay_writes_to_a_folder_that_is_known_only_by_a_path_from_the_root_on() {
        let folder = tempfile::tempdir().unwrap();
        assert!(is_known(folder.path()));
        for other in [Path::new("upper"), &folder.path().join("gone"), Path::new("")] {
            assert!(!is_known(other), "{}", other.display());
        }
    }
}
