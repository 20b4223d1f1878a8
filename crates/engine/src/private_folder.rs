//! Folders that only their owner enters: in a cache lie names and contents, sealed or not.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

const OTHERS: u32 = 0o077;

/// Makes a folder that only its owner can enter, with those above it. One that is there and belongs to this user is
/// closed to others.
///
/// # Errors
/// What the system says; calling again is safe.
pub fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let now = fs::metadata(folder)?;
    let is_own = now.uid() == holdall_sys::users::effective_uid();
    match is_own && now.mode() & OTHERS != 0 {
        true => fs::set_permissions(folder, Permissions::from_mode(0o700)),
        false => Ok(()),
    }
}
