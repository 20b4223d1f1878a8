//! Folders that only their owner enters, and files in them: in a cache lie names and contents, sealed or not. As root,
//! no link of another user's is followed, whenever it is put there.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use holdall_sys::{guarded, metadata};

const OTHERS: u32 = 0o077;

/// Makes a folder that only its owner can enter, with those above it. One that is there and belongs to this user is
/// closed to others.
///
/// # Errors
/// What the system says; calling again is safe.
pub fn make_private(folder: &Path) -> io::Result<()> {
    holdall_sys::make_folders(folder, 0o700)?;
    // A link leads to a folder that is somebody's for another purpose.
    let Ok(folder) = guarded::place(folder).open_dir() else { return Ok(()) };
    let now = folder.stat_self()?;
    let is_own = now.uid == holdall_sys::users::effective_uid();
    match is_own && now.mode & OTHERS != 0 {
        true => metadata::set_mode(&folder, 0o700),
        false => Ok(()),
    }
}

/// Makes an empty file to write to, in the place of one that an earlier run may have left half written.
///
/// # Errors
/// What the system says.
pub(crate) fn make_anew(path: &Path) -> io::Result<File> {
    let place = guarded::place(path);
    match place.remove_file() {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => place.create_new(0o600),
    }
}

/// The same of a file without a name, which is gone once it is closed.
///
/// # Errors
/// What the system says.
pub(crate) fn make_nameless(path: &Path) -> io::Result<File> {
    let made = make_anew(path)?;
    guarded::place(path).remove_file()?;
    Ok(made)
}

/// Opens a regular file to read and to change, which is made if needed.
///
/// # Errors
/// What the system says; for a file that has other names.
pub(crate) fn open_or_make(path: &Path) -> io::Result<File> {
    let place = guarded::place(path);
    place.open_or_create(0o600)?;
    place.open_to_change()
}

/// Opens a regular file that is there to read and to change.
///
/// # Errors
/// As for [`open_or_make`].
pub(crate) fn open_to_change(path: &Path) -> io::Result<File> {
    guarded::place(path).open_to_change()
}

/// The same to write behind its end.
///
/// # Errors
/// As for [`open_or_make`].
pub(crate) fn open_to_append(path: &Path) -> io::Result<File> {
    guarded::place(path).open_to_append()
}

/// Puts a file in the place of another.
///
/// # Errors
/// What the system says.
pub(crate) fn put_in_place(from: &Path, to: &Path) -> io::Result<()> {
    guarded::place(from).rename(&guarded::place(to))
}

/// Reads all of a regular file.
///
/// # Errors
/// What the system says; for anything else than a regular file.
pub(crate) fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    guarded::open_regular(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}
