//! Removing a folder with everything in it, whatever is in it.

use std::io;
use std::path::Path;

use super::{dir::Dir, metadata, target::TargetDir};
use crate::FileKind;

/// Removes a folder whatever the modes of the folders in it, and follows no link. A folder that is not
/// there is fine.
///
/// # Errors
///
/// What the system says; what is left stays.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    match TargetDir::open_root(path) {
        Ok(root) => remove_content(&root)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    std::fs::remove_dir(path)
}

pub(super) fn remove_content(target: &TargetDir) -> io::Result<()> {
    let dir: &Dir = target.as_dir();
    for entry in dir.entries()?.iter() {
        let name = entry.name();
        let kind = match entry.kind() {
            Some(kind) => kind,
            None => dir.stat(name)?.kind,
        };
        if kind == FileKind::Dir {
            metadata::set_mode_at(dir, name, 0o700)?;
            remove_content(&target.open_dir(name)?)?;
            target.remove_dir(name)?;
        } else {
            target.unlink(name)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_can_not_be_written_is_removed_too() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().join("top");
        let closed = top.join("closed");
        fs::create_dir_all(closed.join("below")).unwrap();
        fs::write(closed.join("below/file"), "x").unwrap();
        fs::write(folder.path().join("kept"), "x").unwrap();
        std::os::unix::fs::symlink(folder.path(), closed.join("link")).unwrap();
        fs::set_permissions(closed.join("below"), fs::Permissions::from_mode(0o555)).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        remove_tree(&top).unwrap();
        assert!(!top.exists() && folder.path().join("kept").exists());
        remove_tree(&top).unwrap();
    }
}
