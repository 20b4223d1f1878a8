//! Folders that only their owner enters, and files in them: in a cache lie names and contents, sealed or not.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use holdall_sys::{PathBeneath, Root};

const OTHERS: u32 = 0o077;

/// Makes a folder that only its owner can enter, with those above it. One that is there and belongs to this user is
/// closed to others.
///
/// # Errors
/// What the system says; calling again is safe.
pub fn make_private(folder: &Path) -> io::Result<()> {
    holdall_sys::make_folders(folder, 0o700)?;
    let now = fs::metadata(folder)?;
    let is_own = now.uid() == holdall_sys::users::effective_uid();
    match is_own && now.mode() & OTHERS != 0 {
        true => fs::set_permissions(folder, Permissions::from_mode(0o700)),
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
