//! Directories below the target that are found again by their paths.

use std::io;

use holdall_sys::{Name, TargetDir};

/// The directory that was opened last, with its path below the target: most that follows lies there, too.
#[derive(Default)]
pub(crate) struct LastBelow {
    last: Option<(Vec<u8>, TargetDir)>,
}

impl LastBelow {
    /// Opens the directory at a path below the target, which itself is at the empty path.
    pub(crate) fn open<'d>(
        &'d mut self,
        target: &'d TargetDir,
        path: &[u8],
    ) -> io::Result<&'d TargetDir> {
        if path.is_empty() {
            return Ok(target);
        }
        if self.last.as_ref().is_none_or(|(known, _)| known != path) {
            let mut at: Option<TargetDir> = None;
            for name in path.split(|&byte| byte == b'/') {
                at = Some(at.as_ref().unwrap_or(target).open_dir(Name::new(name)?)?);
            }
            self.last = at.map(|dir| (path.to_vec(), dir));
        }
        let known = self.last.as_ref().map(|(_, dir)| dir);
        known.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Divides a path below the target into that of its directory and its name.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}
