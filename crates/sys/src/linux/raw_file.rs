//! A file as a measurement wants it: around the page cache or with it emptied, and with or without
//! room reserved beforehand.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{Advice, AtFlags, CWD, FallocateFlags, OFlags, StatxFlags};
use rustix::io::Errno;

/// Creates a file that must not be there yet, for reading and writing, mode 0600.
///
/// # Errors
///
/// `AlreadyExists`; else what the system says.
pub fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// Opens a regular file that is there for reading; nothing waits for the other end of a pipe.
///
/// # Errors
///
/// `IsADirectory`, `InvalidInput` for what else is no regular file; else what the system says.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(Errno::ISDIR.into());
    }
    match kind.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")),
    }
}

/// Opens a file that is there for reading and writing, around the page cache if `direct`. A link at
/// the end of the path is not followed.
///
/// # Errors
///
/// What the system says; [`is_direct_refused`] tells whether the file system has no direct access.
pub fn open(path: &Path, direct: bool) -> io::Result<File> {
    let direct = if direct { OFlags::DIRECT } else { OFlags::empty() };
    let flags = i32::try_from((OFlags::NOFOLLOW | direct).bits()).unwrap_or_default();
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)
}

/// Says whether an error of opening, reading or writing directly means that the file system does not
/// do that.
#[must_use]
pub fn is_direct_refused(error: &io::Error) -> bool {
    [Errno::INVAL, Errno::OPNOTSUPP]
        .iter()
        .any(|no| Some(no.raw_os_error()) == error.raw_os_error())
}

/// Of what direct requests to a file at `path` must begin and end at multiples, in bytes: 0 where such
/// requests are taken and go through the page cache all the same, `None` where that is not told (before
/// Linux 6.1, and by some file systems).
///
/// # Errors
///
/// What the system says.
pub fn direct_alignment(path: &Path) -> io::Result<Option<u32>> {
    let wanted = StatxFlags::DIOALIGN;
    let found = rustix::fs::statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, wanted)?;
    let is_told = found.stx_mask & wanted.bits() != 0;
    Ok(is_told.then_some(found.stx_dio_offset_align))
}

/// Reserves room for `[0, len_bytes)` and makes the file that long; `false` if the file system cannot
/// reserve.
///
/// # Errors
///
/// What the system says, `StorageFull` where there is no room.
pub fn reserve(file: &File, len_bytes: u64) -> io::Result<bool> {
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, len_bytes) {
        Ok(()) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Asks the system to drop what it has of a file in its cache. What was not written yet stays, and
/// a file system that lies in memory drops nothing.
///
/// # Errors
///
/// What the system says.
pub fn drop_cached(file: &File) -> io::Result<()> {
    Ok(rustix::fs::fadvise(file, 0, None, Advice::DontNeed)?)
}

/// Tells the system in which order a file will be read, for it to read ahead or not to.
///
/// # Errors
///
/// What the system says.
pub fn advise_order(file: &File, is_random: bool) -> io::Result<()> {
    let advice = if is_random { Advice::Random } else { Advice::Sequential };
    Ok(rustix::fs::fadvise(file, 0, None, advice)?)
}

/// Makes everything durable that was written to the file system of a file, by anybody.
///
/// # Errors
///
/// `ENOSYS` where the system or a sandbox has no such call; else what the system says.
pub fn sync_file_system(file: impl AsFd) -> io::Result<()> {
    match rustix::fs::syncfs(file) {
        Err(Errno::NOSYS | Errno::PERM) => Err(Errno::NOSYS.into()),
        synced => Ok(synced?),
    }
}

/// The same of all file systems, as far as they can: none of them tells what it could not write.
pub fn sync_all_file_systems() {
    rustix::fs::sync();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_made_once_and_a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        let made = create_new(&file).unwrap();
        assert_eq!(create_new(&file).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        if reserve(&made, 5000).unwrap() {
            assert_eq!(made.metadata().unwrap().len(), 5000);
        }
        drop_cached(&made).unwrap();
        advise_order(&made, true).unwrap();
        sync_file_system(&made).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        open(&link, false).unwrap_err();
        open(&file, false).unwrap();
    }
}
