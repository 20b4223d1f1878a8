//! Folders that only their owner enters, and files in them: in a cache lie names and contents, sealed or not.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use holdall_sys::{PathBeneath, Root, metadata, raw_file};

const OTHERS: u32 = 0o077;

/// Makes a folder that only its owner can enter, with those above it. One that is there and belongs to this user is
/// closed to others.
///
/// # Errors
/// What the system says; calling again is safe.
pub fn make_private(folder: &Path) -> io::Result<()> {
    holdall_sys::make_folders(folder, 0o700)?;
    // A link leads to a folder that is somebody's for another purpose.
    let Ok(folder) = beneath_its_folder(folder).open_dir() else { return Ok(()) };
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
    let place = beneath_its_folder(path);
    match place.remove_file() {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => place.create_new(0o600),
    }
}

/// Opens a file to read and to change, which is made if needed.
///
/// # Errors
/// What the system says; if it is no regular file.
pub(crate) fn open_or_make(path: &Path) -> io::Result<File> {
    beneath_its_folder(path).open_or_create(0o600)
}

fn beneath_its_folder(path: &Path) -> PathBeneath {
    let above = path.parent().unwrap_or(Path::new("/"));
    Root::at(above).join(path.file_name().unwrap_or_default())
}

/// Reads all of a regular file.
///
/// # Errors
/// What the system says; for anything else than a regular file.
pub(crate) fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    raw_file::open_regular(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}
