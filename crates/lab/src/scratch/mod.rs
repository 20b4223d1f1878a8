//! A folder to measure in: inside the directory that is measured, and gone afterwards.
//!
//! A measurement needs files of its own on somebody's disk, and that disk holds what matters. So it
//! makes one folder with a name of its own and writes nowhere else, takes at most [`SHARE`] of the
//! room that is free, and removes the folder however it ends. A process that was killed cannot do
//! that: whoever measures there next finds its remains by their name and a lock that nobody holds.
//!
//! ```text
//! DIR/holdall-lab-7f3a91c2/lock     held for as long as the folder is used; says by which process
//!                          ...      what is measured
//! ```

mod remains;

use std::fs::{self, DirBuilder, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use holdall_sys::lock::Held;
use holdall_sys::{disk, process, raw_file, removal};

use crate::LabError;
pub use remains::Remains;

/// The share of the free room that is taken at most: half of it.
pub const SHARE: f64 = 0.5;
/// What is taken at most where the file system does not tell how much is free.
const UNTOLD_BYTES: u64 = 64 << 20;

pub(crate) const PREFIX: &str = "holdall-lab-";
/// Hexadecimal digits behind it.
const NAME_DIGITS: usize = 8;
const LOCK: &str = "lock";
/// How many names are tried: others may be at work in the same directory.
const ATTEMPTS: usize = 16;

/// A folder to measure in. Dropping it removes it with everything in it.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// Held until nothing else is left in the folder.
    lock: Option<Held>,
    free_bytes: Option<u64>,
    claimed_bytes: AtomicU64,
}

impl Scratch {
    /// Removes what killed runs left in `dir`, then makes a folder there.
    ///
    /// # Errors
    /// [`LabError::Io`] if `dir` is not there or no directory, [`LabError::NotWritable`] if it cannot be
    /// written.
    pub fn make(dir: &Path) -> Result<(Self, Remains), LabError> {
        let failed = |error| LabError::io("measuring in", dir, error);
        let dir = &dir.canonicalize().map_err(failed)?;
        let remains = remains::sweep(dir).map_err(failed)?;
        let free_bytes = disk::free_bytes_if_told(dir).map_err(failed)?;
        let (path, lock) = make_locked(dir)
            .map_err(|source| LabError::NotWritable { path: dir.clone(), source })?;
        let claimed_bytes = AtomicU64::new(0);
        Ok((Self { path, lock: Some(lock), free_bytes, claimed_bytes }, remains))
    }

    /// Where it is: an absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file in it that lies like all that will be made there.
    pub(crate) fn sample_file(&self) -> PathBuf {
        self.path.join(LOCK)
    }

    /// How many bytes may still be claimed.
    pub fn room_bytes(&self) -> u64 {
        self.allowed_bytes().saturating_sub(self.claimed_bytes.load(Ordering::Relaxed))
    }

    /// Takes note that `bytes` will be written, before they are.
    ///
    /// # Errors
    /// [`LabError::NoRoom`] if all claims together would be more than [`SHARE`] of what was free.
    pub fn claim(&self, bytes: u64) -> Result<(), LabError> {
        let claimed = self.claimed_bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if claimed <= self.allowed_bytes() {
            return Ok(());
        }
        self.release(bytes);
        Err(LabError::NoRoom {
            path: self.path.parent().unwrap_or(&self.path).to_owned(),
            wanted_bytes: claimed,
            allowed_bytes: self.allowed_bytes(),
            free_bytes: self.free_bytes,
        })
    }

    /// Takes note that `bytes`, which were claimed, are free again.
    pub fn release(&self, bytes: u64) {
        self.claimed_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Removes it now.
    ///
    /// # Errors
    /// [`LabError::Io`]; what is left stays, and the next run removes it.
    pub fn remove(mut self) -> Result<(), LabError> {
        self.clear().map_err(|error| LabError::io("removing", &self.path, error))
    }

    fn clear(&mut self) -> io::Result<()> {
        self.lock.take().map_or(Ok(()), |lock| remove_locked(&self.path, lock))
    }

    fn allowed_bytes(&self) -> u64 {
        self.free_bytes.map_or(UNTOLD_BYTES, |free| (free as f64 * SHARE) as u64)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // After a failure elsewhere, that one is told.
        let _ = self.clear();
    }
}

/// Removes a folder whose lock is held. NFS and sshfs keep a file that is open and was removed under
/// another name until it is closed, so the lock goes last, and closed.
fn remove_locked(folder: &Path, lock: Held) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() == LOCK {
            continue;
        }
        if entry.file_type()?.is_dir() {
            removal::remove_tree(&entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    drop(lock);
    // Whoever measures here next may have taken the rest for remains.
    removal::remove_tree(folder)
}

/// Makes a folder with a name that is free, and locks it.
fn make_locked(dir: &Path) -> io::Result<(PathBuf, Held)> {
    for _ in 0..ATTEMPTS {
        let number = RandomState::new().hash_one(std::process::id());
        let path = dir.join(format!("{PREFIX}{:0NAME_DIGITS$x}", number as u32));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        }
        match take(&path) {
            Ok(Some(lock)) => return Ok((path, lock)),
            // Somebody took the folder for remains before it was locked.
            Ok(None) => {}
            Err(error) => {
                let _ = removal::remove_tree(&path);
                return Err(error);
            }
        }
    }
    Err(io::Error::other("no name is free for a folder to measure in"))
}

/// Whether a folder can be one of ours by its name.
fn is_ours(name: &str) -> bool {
    let digits = name.strip_prefix(PREFIX).unwrap_or_default().as_bytes();
    digits.len() == NAME_DIGITS && digits.iter().all(u8::is_ascii_hexdigit)
}

/// Locks a new folder; `None` if somebody removes it meanwhile. Where there are no locks, the name
/// of the process in it must do.
fn take(path: &Path) -> io::Result<Option<Held>> {
    let lock_path = path.join(LOCK);
    let file = match raw_file::create_new(&lock_path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(mut lock) = Held::exclusive(file)? else {
        return Ok(None);
    };
    lock.write_all(process::own().unwrap_or_default().as_bytes())?;
    let is_ours = fs::symlink_metadata(&lock_path);
    let is_ours = is_ours.is_ok_and(|found| Some(found.ino()) == inode(&lock));
    Ok(is_ours.then_some(lock))
}

fn inode(file: &File) -> Option<u64> {
    Some(file.metadata().ok()?.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_a_name_of_its_own_and_is_gone_afterwards() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("holdall-lab-file"), "somebody's").unwrap();
        let (one, _) = Scratch::make(dir.path()).unwrap();
        let (other, remains) = Scratch::make(dir.path()).unwrap();
        assert_eq!((remains.removed, remains.in_use, remains.unsure), (0, 1, 0));
        fs::write(one.path().join("file"), "x").unwrap();
        let (one_path, other_path) = (one.path().to_owned(), other.path().to_owned());
        assert!(one_path != other_path && one_path.parent() == Some(dir.path()));
        drop(one);
        other.remove().unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "only the file that was there");
    }

    #[test]
    fn more_than_its_share_of_the_room_is_refused_before_anything_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let (scratch, _) = Scratch::make(dir.path()).unwrap();
        let room = scratch.room_bytes();
        scratch.claim(room).unwrap();
        let refused = scratch.claim(1).unwrap_err();
        let LabError::NoRoom { wanted_bytes, allowed_bytes, free_bytes, .. } = refused else {
            panic!("{refused}")
        };
        assert_eq!((wanted_bytes, allowed_bytes), (room + 1, room));
        assert!(allowed_bytes <= free_bytes.unwrap() / 2);
        scratch.release(1);
        scratch.claim(1).unwrap();
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let error = Scratch::make(Path::new("/no/such/directory")).unwrap_err();
        assert!(error.to_string().contains("/no/such/directory"), "{error}");
    }

    #[test]
    fn a_file_system_that_takes_no_folder_is_not_called_absent() {
        let refused = Scratch::make(Path::new("/proc")).unwrap_err();
        assert!(matches!(refused, LabError::NotWritable { .. }), "{refused}");
    }
}
