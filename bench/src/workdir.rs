//! Where the benchmark writes: on a journalled file system, or it says that it is not.
//!
//! On ext4 without a journal, creating files soon after many were deleted falls from 30,000/s to
//! 1,500/s, which would be charged to whoever restores next. As root such a place is given a loop
//! mount of its own.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::text;

/// What the sets take at their largest, with repository and restore: bytes and inodes. Images are
/// sparse.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) bytes: u64,
    pub(crate) files: u64,
}

impl Room {
    /// For the usual sets: D2 needs about 12 GB, D4 12 GB and 3,000,000 inodes.
    pub(crate) const USUAL: Self = Self { bytes: 24 << 30, files: 4_000_000 };
}

/// The folder for data sets, repositories and restores; a loop mount ends with it.
pub(crate) struct WorkDir {
    path: PathBuf,
    /// Words about the file system, for the table.
    pub(crate) file_system: String,
    mounted: Option<LoopMount>,
}

impl WorkDir {
    /// Makes `folder` ready, with a loop mount of `room` inside where it is needed and allowed.
    ///
    /// # Errors
    ///
    /// If the folder cannot be made or looked at; a loop mount that fails is only said.
    pub(crate) fn open(folder: &Path, room: Room) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {folder:?}"))?;
        let folder = folder.canonicalize()?;
        let kind = FileSystem::of(&folder)?;
        if kind.is_journalled() {
            return Ok(Self { path: folder, file_system: kind.words(), mounted: None });
        }
        if rustix::process::geteuid().is_root() {
            match LoopMount::new(&folder, room) {
                Ok(mount) => {
                    let file_system =
                        format!("{} on a loop device", FileSystem::of(&mount.point)?.words());
                    return Ok(Self {
                        path: mount.point.clone(),
                        file_system,
                        mounted: Some(mount),
                    });
                }
                Err(error) => println!("no loop mount: {error:#}"),
            }
        }
        println!("{folder:?} is on {}: restores may be measured too slow", kind.words());
        Ok(Self { path: folder, file_system: kind.words(), mounted: None })
    }

    /// Makes `folder` ready as it is, for runs whose figures nobody reads.
    ///
    /// # Errors
    ///
    /// If the folder cannot be made or looked at.
    pub(crate) fn plain(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {folder:?}"))?;
        let path = folder.canonicalize()?;
        let file_system = FileSystem::of(&path)?.words();
        Ok(Self { path, file_system, mounted: None })
    }

    /// The folder to write in.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Unmounts what was mounted.
    ///
    /// # Errors
    ///
    /// If the loop mount is still in use; it stays.
    pub(crate) fn close(mut self) -> Result<()> {
        self.mounted.take().map_or(Ok(()), |mount| mount.unmount())
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.mounted.take().map(|mount| mount.unmount()) {
            println!("{error:#}");
        }
    }
}

/// An ext4 image, mounted.
struct LoopMount {
    image: PathBuf,
    point: PathBuf,
}

impl LoopMount {
    fn new(folder: &Path, room: Room) -> Result<Self> {
        let (image, point) = (folder.join("journalled.img"), folder.join("journalled"));
        fs::create_dir_all(&point)?;
        let mount = Self { image, point };
        mount.clear()?;
        mount.make(room).inspect_err(|_| drop(fs::remove_file(&mount.image)))?;
        Ok(mount)
    }

    /// Takes away what an interrupted run left; a run that still goes on keeps its own.
    fn clear(&self) -> Result<()> {
        if fs::exists(&self.image)? {
            let is_mounted = fs::metadata(&self.point)?.dev() != fs::metadata(&self.image)?.dev();
            if is_mounted {
                call(Command::new("umount").arg(&self.point))?;
            }
            fs::remove_file(&self.image)?;
        }
        Ok(())
    }

    fn make(&self, room: Room) -> Result<()> {
        let space = rustix::fs::statvfs(&self.point)?;
        let size_bytes = room.bytes.min(space.f_bavail * space.f_frsize / 10 * 9);
        fs::File::create_new(&self.image)?.set_len(size_bytes)?;
        let options = ["-q", "-F", "-O", "has_journal", "-E", "lazy_itable_init=0,discard", "-N"];
        let inodes = room.files.to_string();
        call(Command::new("mkfs.ext4").args(options).arg(inodes).arg(&self.image))?;
        let options = ["-o", "loop,noatime,discard"];
        call(Command::new("mount").args(options).arg(&self.image).arg(&self.point))
    }

    fn unmount(&self) -> Result<()> {
        call(Command::new("umount").arg(&self.point))?;
        fs::remove_file(&self.image)?;
        fs::remove_dir(&self.point)?;
        Ok(())
    }
}

/// What a folder lies on.
struct FileSystem {
    /// As the kernel calls it: `ext4`, `tmpfs`, ...
    kind: String,
    has_journal: bool,
}

impl FileSystem {
    fn of(folder: &Path) -> Result<Self> {
        let device = fs::metadata(folder)?.dev();
        let device = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        let (kind, source) = find_mount(&mounts, &device)
            .with_context(|| format!("no mount has the device {device} of {folder:?}"))?;
        let has_journal = match kind {
            "ext4" | "ext3" => ext_has_journal(source),
            kind => ["xfs", "btrfs", "zfs", "f2fs", "bcachefs"].contains(&kind),
        };
        Ok(Self { kind: kind.to_owned(), has_journal })
    }

    fn is_journalled(&self) -> bool {
        self.has_journal
    }

    fn words(&self) -> String {
        match (self.kind.as_str(), self.has_journal) {
            ("ext4", true) => "ext4 with a journal".to_owned(),
            ("ext4", false) => "ext4 without a journal".to_owned(),
            (kind, _) => kind.to_owned(),
        }
    }
}

/// Kind and source of the mount of `device` (`MAJOR:MINOR`) in the text of `mountinfo`.
fn find_mount<'a>(mounts: &'a str, device: &str) -> Option<(&'a str, &'a str)> {
    let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some(device))?;
    let mut after = line.split_once(" - ")?.1.split(' ');
    Some((after.next()?, after.next()?))
}

/// Whether the kernel runs a journal for the device at `source`.
fn ext_has_journal(source: &str) -> bool {
    // The name behind /dev/root and /dev/mapper/... is the one that /proc/fs/jbd2 uses.
    let real = fs::canonicalize(source).unwrap_or_else(|_| PathBuf::from(source));
    let Some(name) = real.file_name().and_then(|name| name.to_str()) else { return false };
    let Ok(journals) = fs::read_dir("/proc/fs/jbd2") else { return false };
    journals
        .filter_map(Result::ok)
        .any(|entry| entry.file_name().to_string_lossy().starts_with(&format!("{name}-")))
}

fn call(command: &mut Command) -> Result<()> {
    text(command).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_of_a_device_is_found_behind_optional_fields() {
        let mounts = "22 1 254:1 / / rw,relatime shared:1 master:2 - ext4 /dev/vda1 rw\n\
                      30 22 0:25 / /dev/shm rw - tmpfs tmpfs rw\n";
        assert_eq!(find_mount(mounts, "254:1"), Some(("ext4", "/dev/vda1")));
        assert_eq!(find_mount(mounts, "0:25"), Some(("tmpfs", "tmpfs")));
        assert_eq!(find_mount(mounts, "8:1"), None);
    }

    #[test]
    fn the_file_system_of_a_folder_has_words() {
        let words = FileSystem::of(&std::env::temp_dir()).map(|kind| kind.words());
        assert!(words.is_ok_and(|words| !words.is_empty()));
    }
}
